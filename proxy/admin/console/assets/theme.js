// The chosen theme must stand before the first paint, so this one script is no module and blocks.
(() => {
  'use strict';
  let theme = null;
  try {
    theme = localStorage.getItem('arkvory.theme');
  } catch {
    // A browser that stores nothing follows its system.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
