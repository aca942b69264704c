// The chosen theme, before the first paint; a classic script, because modules run after it. Read next: settings.mjs.
try {
  const { theme } = JSON.parse(localStorage.getItem('doppler-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The system's theme stays if there is no storage.
}
