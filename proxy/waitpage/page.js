(() => {
'use strict';
const at = id => document.getElementById(id);
const data = at('wait').dataset, words = JSON.parse(data.words), lang = document.documentElement.lang;
const rules = new Intl.PluralRules(lang);
const clocks = locale => [{}, { day: 'numeric', month: 'long' }].map(day =>
  new Intl.DateTimeFormat(locale, { ...day, hour: '2-digit', minute: '2-digit' }));
let dayTime, otherDay;
try {
  [dayTime, otherDay] = clocks(navigator.language.toLowerCase().startsWith(lang) ? navigator.language : lang);
} catch {
  // Some systems name a language that the browser itself does not take.
  [dayTime, otherDay] = clocks(lang);
}
const name = at('name').textContent, minute = 60000;
// A fragment would turn the navigation into a scroll, and fetch refuses an address with a password.
const url = new URL(location.href);
url.hash = url.username = url.password = '';
// Estimates are shown by the clock of this machine, which may be wrong by more than the answer's way takes.
const ahead = Date.parse(data.now) - Date.now();
const skew = Math.abs(ahead) > minute ? ahead : 0;

const whole = n => Number.isSafeInteger(+n) && n > 0 ? +n : 0;
const moment = s => typeof s === 'string' && Date.parse(s) - skew || 0;
const between = (n, low, high) => Math.min(high, Math.max(low, n));
const view = (position, starts, earliest, latest) =>
  ({ position: whole(position), starts: moment(starts), earliest: moment(earliest), latest: moment(latest) });

let facts = view(data.position, data.starts, data.earliest, data.latest);
let told = facts, most = 0, state = 'waiting', ticket = '';
let request = null, timer = 0, due = 0, asked = 0, failures = 0, strange = 0, over = false, clicked = false;

// fill returns the pieces of a phrase, its {x} replaced by values.x.
const fill = (phrase, values) => phrase.split(/\{(\w)\}/).map((piece, i) => i % 2 ? values[piece] : piece);
const counted = (forms, n) => fill(forms[rules.select(n)] || forms.other, { n }).join('');

function clock(time) {
  const node = document.createElement('time'), date = new Date(time);
  node.dateTime = date.toISOString();
  node.textContent = (date.toDateString() === new Date().toDateString() ? dayTime : otherDay).format(date);
  return node;
}

function inWords(wait) {
  const minutes = Math.round(wait / minute);
  if (minutes < 1) return words.shortly;
  if (minutes < 90) return counted(words.minutes, minutes);
  if (minutes < 36 * 60) return counted(words.hours, Math.round(minutes / 60));
  return counted(words.days, Math.round(minutes / 1440));
}

function when() {
  const now = Date.now(), { starts, earliest, latest } = facts, wait = starts - now;
  if (!starts) return [words.unknownStart];
  if (wait <= 0) return [words.soon];
  const width = earliest && latest ? latest - earliest : 0;
  if (width > 2 * minute && width > wait / 5) return fill(words.between, { a: clock(Math.max(earliest, now)), b: clock(latest) });
  return fill(words.about, { t: clock(starts), i: inWords(wait) });
}

const textOf = pieces => pieces.map(piece => piece.textContent ?? piece).join('');

// put touches the document only when its text changes, so that a reader is not disturbed.
function put(node, ...pieces) {
  if (node.textContent !== textOf(pieces)) node.replaceChildren(...pieces);
}

const queue = () => !facts.position ? '' : facts.position === 1 ? words.next : counted(words.ahead, facts.position - 1);

// worth says whether the news since the last told is worth an interruption.
function worth() {
  const moved = Math.abs(facts.position - told.position), shifted = Math.abs(facts.starts - told.starts);
  return !facts.position !== !told.position || moved && moved >= told.position / 10 ||
    !facts.starts !== !told.starts || shifted > Math.max(minute, Math.abs(told.starts - Date.now()) / 5);
}

function render() {
  const bar = at('bar'), start = when(), started = state === 'started';
  put(at('state'), words[state]);
  if (started) {
    put(at('head'), words.startedHead);
    put(at('now'), words.again);
    at('facts').hidden = at('keep').hidden = true;
    put(at('said'), '');
    bar.value = bar.max = 1;
  } else {
    put(at('place'), facts.position ? String(facts.position) : words.unknownPlace);
    put(at('ahead'), queue());
    put(at('when'), ...start);
    most = Math.max(most, facts.position);
    if (facts.position) {
      bar.max = most;
      bar.value = most - facts.position;
    } else {
      bar.removeAttribute('value');
    }
    if (worth()) {
      told = facts;
      put(at('said'), fill(words.said, { n: at('place').textContent, q: queue(), w: textOf(start) }).join(''));
    }
  }
  const title = fill(started ? words.startedTitle : facts.position ? words.title : words.titleUnknown, { n: facts.position, f: name }).join('');
  if (document.title !== title) document.title = title;
}

function show(next) {
  state = next;
  render();
}

// read returns the JSON of an answer, or null: a file that came instead is not read to its end.
async function read(answer) {
  if (!/^application\/json\b/i.test(answer.headers.get('Content-Type') || '') || !answer.body) return null;
  const reader = answer.body.getReader(), decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (text.length > 65536) return null;
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function start() {
  over = true;
  show('started');
  location.replace(url.href);
}

// look lets the browser show what the server really says, once: the mark outlives the reload and no good answer.
function look() {
  if (history.state?.looked) return lost();
  over = true;
  history.replaceState({ looked: true }, '');
  location.reload();
}

function lost() {
  failures++;
  clicked = false;
  show('lost');
  return Math.min(60, 2 ** failures);
}

function found(news) {
  failures = strange = 0;
  if (history.state?.looked) history.replaceState(null, '');
  if (/^[\w.~-]{1,256}$/.test(news.queueTicket)) ticket = news.queueTicket;
  // A process that stops knows no place: what was known is shown on.
  if (news.queuePosition || news.startsAt) {
    facts = view(news.queuePosition, news.startsAt, news.startsWindow?.earliest, news.startsWindow?.latest);
  }
  show(clicked ? 'notYet' : 'waiting');
  clicked = false;
  return between(news.retryAfterSeconds, 1, 300);
}

// judge acts on an answer and returns the seconds until the next question.
async function judge(answer) {
  if (answer.type === 'opaqueredirect' || [401, 403, 404, 410].includes(answer.status)) return look();
  const news = await read(answer);
  if (answer.ok) {
    if (news?.ready === true) return start();
    // Twice something else than an answer to this question: the file is served without a queue.
    return ++strange > 1 ? start() : lost();
  }
  return [429, 503].includes(answer.status) && news?.retryAfterSeconds > 0 ? found(news) : lost();
}

async function poll() {
  if (request || over) return;
  clearTimeout(timer);
  asked = Date.now();
  const mine = request = new AbortController(), limit = setTimeout(() => mine.abort(), minute);
  const headers = { Accept: 'application/json', [data.field]: '1' };
  if (ticket) headers['Arkvory-Queue-Ticket'] = ticket;
  let wait;
  try {
    const answer = await fetch(url.href, {
      headers, signal: mine.signal, mode: 'same-origin', credentials: 'same-origin', cache: 'no-store', redirect: 'manual' });
    if (request === mine) wait = await judge(answer);
  } catch {
    if (request === mine) wait = lost();
  }
  clearTimeout(limit);
  mine.abort();
  // A page that was put away in between has dropped this request.
  if (request !== mine) return;
  request = null;
  if (!over) schedule(wait * (1 + Math.random() / 10));
}

function schedule(seconds) {
  clearTimeout(timer);
  due = Date.now() + seconds * 1000;
  timer = setTimeout(poll, seconds * 1000);
}

at('now').addEventListener('click', event => {
  // When asking does not work, or the file was sent, the link is a plain link. So it is for another tab.
  if (over || failures || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  clicked = true;
  if (!request) schedule(Math.max(0, 1 - (Date.now() - asked) / 1000));
});
addEventListener('pagehide', () => {
  clearTimeout(timer);
  request?.abort();
  request = null;
});
addEventListener('pageshow', event => {
  if (event.persisted && !over && !request) schedule(0);
});
addEventListener('online', () => {
  if (failures) poll();
});
document.addEventListener('visibilitychange', () => {
  // Timers of a hidden page are late.
  if (!document.hidden && Date.now() >= due) poll();
});
setInterval(() => over || render(), 20000);
render();
schedule(between(whole(data.retry), 1, 300) * (1 + Math.random() / 10));
})();
