// Languages: which one is spoken, and its phrases. The browser's list decides until the reader does.
import en from './words.en.js';
import ru from './words.ru.js';

const all = { en, ru };

export const languages = [['en', 'English'], ['ru', 'Русский']];

const key = 'arkvory.language';

function remembered() {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a browser that stores nothing
  }
}

function choose() {
  const wanted = [remembered(), ...(navigator.languages || [navigator.language])];
  for (const one of wanted) {
    const short = String(one || '').toLowerCase().split('-')[0];
    if (all[short]) return short;
  }
  return 'en';
}

let language = choose();
let rules = new Intl.PluralRules(language);

export const lang = () => language;

// locale is the reader's own variant of the language, for dates and numbers.
export function locale() {
  const own = (navigator.languages || []).find(one => one.toLowerCase().split('-')[0] === language);
  try {
    return Intl.getCanonicalLocales(own || language)[0];
  } catch {
    return language; // some systems name a language that the browser itself does not take
  }
}

// speak changes the language for this and later visits.
export function speak(next) {
  language = all[next] ? next : 'en';
  rules = new Intl.PluralRules(language);
  try {
    localStorage.setItem(key, language);
  } catch {
    // It holds for this visit then.
  }
}

const fill = (phrase, values) => phrase.replace(/\{(\w+)\}/g, (whole, name) => values && name in values ? String(values[name]) : whole);

// has says whether there is such a phrase: words of the API are looked up and may be newer than this console.
export const has = name => Object.hasOwn(all[language], name);

// t is the phrase of that name with its {x} replaced by values.x.
export const t = (name, values) => fill(has(name) ? all[language][name] : name, values);

const forms = { en: ['one', 'other'], ru: ['one', 'few', 'many'] };

// count is a phrase whose forms are parted by |, chosen by the number; shown is the number as it is written.
export function count(name, number, shown) {
  const phrases = t(name).split('|');
  const form = forms[language].indexOf(rules.select(number));
  // A fraction takes the second form in both languages.
  return fill(phrases[form] ?? phrases[1] ?? phrases[0], { n: shown ?? number });
}
