// The shell: header, views by the hash of the address, theme, language, and whether the figures are fresh.
import { hasToken, onUnauthorized, reconsider, setToken } from './api.js';
import { attr, h, put, say, show } from './dom.js';
import { exact, span } from './format.js';
import { lang, languages, speak, t } from './i18n.js';
import { queueView } from './queue.js';
import { sessionsView } from './sessions.js';
import { settingsView } from './settings.js';
import { askToken } from './token.js';
import { windowsView } from './windows.js';

const views = { queue: queueView, sessions: sessionsView, settings: settingsView, windows: windowsView };
const themes = ['system', 'light', 'dark'];
const main = document.getElementById('main'), top = document.getElementById('top');

let current = null, name = '', shell = null, lost = false;

const wanted = () => {
  const [, found] = /^#\/([a-z]+)/.exec(location.hash) || [];
  return Object.hasOwn(views, found) ? found : 'queue';
};

// build makes the header anew, as at the start and after a change of the language.
function build() {
  document.documentElement.lang = lang();
  put(document.getElementById('skip'), t('shell.skip'));
  const links = Object.fromEntries(Object.keys(views).map(one => [one, h('a', { href: `#/${one}` }, t(`nav.${one}`))]));
  const language = h('select', { id: 'language', onchange: () => change(language.value) },
    languages.map(([code, own]) => h('option', { value: code, lang: code, selected: code === lang() }, own)));
  const theme = h('select', { id: 'theme', onchange: () => paint(theme.value) },
    themes.map(one => h('option', { value: one, selected: one === chosen() }, t(`theme.${one}`))));
  const forget = h('button', { type: 'button', class: 'quiet', id: 'forget', onclick: leave }, t('token.forget'));
  const dot = h('span', { class: 'dot', 'aria-hidden': 'true' }), text = h('span'), again = h('button', { type: 'button', class: 'quiet', id: 'again', hidden: true, onclick: retry });
  shell = { links, dot, text, again, forget, status: h('div', { class: 'status', id: 'status' }, dot, text, again) };
  top.replaceChildren(
    h('div', { class: 'bar' },
      h('a', { class: 'brand', href: '#/queue' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'Arkvory'),
      h('nav', { 'aria-label': t('shell.nav') }, h('ul', {}, Object.values(links).map(link => h('li', {}, link)))),
      shell.status,
      h('div', { class: 'tools' },
        h('label', { class: 'said', for: 'language' }, t('shell.language')), language,
        h('label', { class: 'said', for: 'theme' }, t('shell.theme')), theme, forget)));
  show(forget, hasToken());
}

function chosen() {
  return document.documentElement.dataset.theme || 'system';
}

function paint(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('arkvory.theme');
    else localStorage.setItem('arkvory.theme', theme);
  } catch {
    // It holds for this visit then.
  }
}

function change(next) {
  speak(next);
  build();
  go(false);
  document.getElementById('language').focus();
}

function leave() {
  setToken('');
  reconsider();
  show(shell.forget, false);
  say(t('token.forgotten'));
  current?.now();
}

function retry() {
  reconsider();
  current?.now();
}

// report shows how fresh the figures are; a reader hears of it only when that changes.
function report({ state, at, next, error }) {
  const text = {
    live: () => t('status.live', { at: exact(at) }),
    stale: () => at ? t('status.stale', { at: exact(at), next: span(next) }) : t('status.never', { next: span(next) }),
    slowed: () => t('status.slowed', { next: span(next) }),
    locked: () => t('status.locked'),
  }[state]();
  attr(shell.status, 'data-state', state);
  attr(document.body, 'data-state', state);
  put(shell.text, text);
  put(shell.again, state === 'locked' ? t('token.give') : t('status.again'));
  show(shell.again, state !== 'live');
  show(shell.forget, hasToken());
  if (lost !== (state !== 'live')) {
    lost = !lost;
    say(lost ? text : t('status.back'));
  }
  current?.fault?.(state === 'live' ? null : { state, at, text, error });
}

// go shows the view that the address names; its heading gets the focus when the reader went there.
function go(moved) {
  current?.stop();
  name = wanted();
  for (const [one, link] of Object.entries(shell.links)) attr(link, 'aria-current', one === name ? 'page' : null);
  document.title = `${t(`nav.${name}`)} – Arkvory`;
  attr(main, 'data-view', name);
  main.replaceChildren();
  attr(shell.status, 'data-state', 'asking');
  put(shell.text, t('status.asking'));
  show(shell.again, false);
  current = null;
  current = views[name](main, report);
  if (moved) {
    const head = main.querySelector('h1');
    attr(head, 'tabindex', '-1');
    head.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

document.getElementById('skip').addEventListener('click', event => {
  event.preventDefault(); // the hash names the view
  main.focus();
});

addEventListener('hashchange', () => {
  if (wanted() !== name) go(true);
  else current?.routed?.();
});

onUnauthorized(askToken);
build();
go(false);
