// Numbers as people read them: bytes, rates, times. No DOM, so that Node tests it.

const kUnits = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 15548928 -> "14.8 MiB". @param {number} bytes */
export function bytesText(bytes) {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < kUnits.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${value} bytes` : `${value < 10 ? value.toFixed(1) : value < 100 ? value.toFixed(1) : Math.round(value)} ${kUnits[unit]}`;
}

/** 1234.5 -> "1,235", 77.43 -> "77.4", 3.217 -> "3.22". @param {number} value */
export function rateText(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** 0.0471 -> "47 ms", 4.71 -> "4.7 s", 135 -> "2 min 15 s". @param {number} seconds */
export function secondsText(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/**
 * The day of a conversation in the list: "Today", "Yesterday", "12 Nov 2026".
 * @param {number} time
 * @param {number} now
 */
export function dayText(time, now) {
  const kDayMs = 86400000;
  const day = (value) => Math.floor((value - new Date(value).getTimezoneOffset() * 60000) / kDayMs);
  const ago = day(now) - day(time);
  if (ago <= 0) return 'Today';
  if (ago === 1) return 'Yesterday';
  return new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
}

/** The first line of a text, cut at a word. @param {string} text @param {number} [most] characters */
export function titleText(text, most = 48) {
  const line = text.trim().split('\n')[0].replace(/\s+/g, ' ');
  if (line.length <= most) return line;
  const cut = line.slice(0, most);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), most / 2)).trimEnd()}…`;
}
