// Before the first paint, hence a classic script: the chosen theme; and what goes wrong before the page's modules run
// is shown in place of the page. Read next: settings.mjs, last_resort.mjs.
try {
  const { theme } = JSON.parse(localStorage.getItem('doppler-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The system's theme stays if there is no storage.
}
{
  const show = (why) => {
    if (globalThis.dopplerStarted) return;
    const place = document.getElementById('content') ?? document.body;
    const box = document.createElement('div');
    box.className = 'start-failure';
    box.setAttribute('role', 'alert');
    const text = document.createElement('p');
    text.textContent = `The page could not start: ${why}`;
    const again = document.createElement('button');
    again.textContent = 'Try again';
    again.addEventListener('click', () => location.reload());
    box.append(text, again);
    place?.replaceChildren(box);
  };
  const reasonOf = (error) => String(error?.message ?? error ?? 'its cause is not known');
  addEventListener('error', (event) => {
    const { target } = event;
    if (target instanceof HTMLScriptElement) show(`${target.src} could not be loaded.`);
    else if (event instanceof ErrorEvent) show(reasonOf(event.error ?? event.message));
  }, true);
  addEventListener('unhandledrejection', (event) => show(reasonOf(event.reason)));
}
