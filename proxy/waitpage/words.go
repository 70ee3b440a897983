package waitpage

import (
	"encoding/json"
	"html"
	"time"
)

// forms are the plural forms of a phrase by CLDR category; {n} is the number. Other is always there.
type forms struct {
	One   string `json:"one,omitempty"`
	Few   string `json:"few,omitempty"`
	Many  string `json:"many,omitempty"`
	Other string `json:"other"`
}

// scriptWords are the phrases that the page's script uses too: it gets them as JSON, so that they are written once. In braces stand n a
// number, f the file's name, t a time, a and b the ends of an interval, i a duration in words, q the downloads ahead, w when it starts.
type scriptWords struct {
	Title        string `json:"title"`
	TitleUnknown string `json:"titleUnknown"`
	StartedTitle string `json:"startedTitle"`
	StartedHead  string `json:"startedHead"`
	UnknownPlace string `json:"unknownPlace"`
	Ahead        forms  `json:"ahead"`
	Next         string `json:"next"`
	About        string `json:"about"`
	Between      string `json:"between"`
	Soon         string `json:"soon"`
	UnknownStart string `json:"unknownStart"`
	Shortly      string `json:"shortly"`
	Minutes      forms  `json:"minutes"`
	Hours        forms  `json:"hours"`
	Days         forms  `json:"days"`
	Said         string `json:"said"`
	Waiting      string `json:"waiting"`
	NotYet       string `json:"notYet"`
	Lost         string `json:"lost"`
	Started      string `json:"started"`
	Again        string `json:"again"`
}

// words is one language of the page.
type words struct {
	tag        string // BCP 47 and the primary subtag of Accept-Language
	plural     func(forms *forms, n int) string
	script     scriptWords
	head       string
	file       string // stands for a name that is not known
	placeLabel string
	whenLabel  string
	barLabel   string
	yielded    string
	keep       string
	close      string
	now        string
	noScript   forms
	months     [12]string
}

// languages are those of the page; the first one is the default.
var languages = [...]words{english, russian}

var english = words{
	tag: "en",
	plural: func(f *forms, n int) string {
		if n == 1 {
			return f.One
		}
		return f.Other
	},
	script: scriptWords{
		Title: "Place {n} in the queue – {f}", TitleUnknown: "In the queue – {f}", StartedTitle: "Download started – {f}",
		StartedHead:  "Your download has started",
		UnknownPlace: "not known yet",
		Ahead:        forms{One: "{n} download is ahead of yours.", Other: "{n} downloads are ahead of yours."},
		Next:         "Yours is the next one.",
		About:        "about {t} ({i})", Between: "between {a} and {b}", Soon: "any moment now", UnknownStart: "not known yet",
		Shortly: "in less than a minute",
		Minutes: forms{One: "in {n} minute", Other: "in {n} minutes"},
		Hours:   forms{One: "in about {n} hour", Other: "in about {n} hours"},
		Days:    forms{One: "in about {n} day", Other: "in about {n} days"},
		Said:    "Place in the queue: {n}. {q} Expected start: {w}.",
		Waiting: "Waiting for your turn.", NotYet: "It is not your turn yet.", Lost: "Connection lost, trying again.",
		Started: "Your turn has come and the download has started. You can close this page once your browser shows it.",
		Again:   "Download again if nothing has started",
	},
	head: "Your download is in the queue", file: "the file", placeLabel: "Place in the queue", whenLabel: "Expected start",
	barLabel: "Way through the queue",
	yielded:  "Your download made room for another one and waits again.",
	keep:     "Start as soon as possible: keep this page open. The download starts by itself when your turn comes.",
	close:    "If you close the page, your place is kept for a few minutes: open the same address again in time and you go on from there.",
	now:      "Download now if your turn has come",
	noScript: forms{
		One:   "Scripts are switched off in your browser, so this page asks again every {n} second. When the download has started, you can close it.",
		Other: "Scripts are switched off in your browser, so this page asks again every {n} seconds. When the download has started, you can close it.",
	},
	months: [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
}

var russian = words{
	tag: "ru",
	plural: func(f *forms, n int) string {
		switch ten, hundred := n%10, n%100; {
		case ten == 1 && hundred != 11:
			return f.One
		case ten >= 2 && ten <= 4 && (hundred < 12 || hundred > 14):
			return f.Few
		}
		return f.Many
	},
	script: scriptWords{
		Title: "Место {n} в очереди – {f}", TitleUnknown: "В очереди – {f}", StartedTitle: "Скачивание началось – {f}",
		StartedHead:  "Скачивание началось",
		UnknownPlace: "пока неизвестно",
		Ahead: forms{One: "Впереди {n} скачивание.", Few: "Впереди {n} скачивания.", Many: "Впереди {n} скачиваний.",
			Other: "Впереди {n} скачивания."},
		Next:  "Следующее скачивание – ваше.",
		About: "около {t} ({i})", Between: "между {a} и {b}", Soon: "с минуты на минуту", UnknownStart: "пока неизвестно",
		Shortly: "меньше чем через минуту",
		Minutes: forms{One: "через {n} минуту", Few: "через {n} минуты", Many: "через {n} минут", Other: "через {n} минуты"},
		Hours: forms{One: "примерно через {n} час", Few: "примерно через {n} часа", Many: "примерно через {n} часов",
			Other: "примерно через {n} часа"},
		Days: forms{One: "примерно через {n} день", Few: "примерно через {n} дня", Many: "примерно через {n} дней",
			Other: "примерно через {n} дня"},
		Said:    "Место в очереди: {n}. {q} Ожидаемое начало: {w}.",
		Waiting: "Ждём вашей очереди.", NotYet: "Ваша очередь ещё не подошла.", Lost: "Связь потеряна, пробуем снова.",
		Started: "Ваша очередь подошла, скачивание началось. Страницу можно закрыть, когда браузер его покажет.",
		Again:   "Скачать ещё раз, если ничего не началось",
	},
	head: "Ваше скачивание ждёт своей очереди", file: "файл", placeLabel: "Место в очереди", whenLabel: "Ожидаемое начало",
	barLabel: "Продвижение в очереди",
	yielded:  "Ваше скачивание уступило место другому и снова ждёт.",
	keep:     "Чтобы начать как можно раньше, не закрывайте эту страницу. Скачивание начнётся само, когда подойдёт очередь.",
	close:    "Если закрыть страницу, место сохранится несколько минут: вовремя откройте тот же адрес, и ожидание продолжится с него.",
	now:      "Скачать сейчас, если очередь подошла",
	noScript: forms{
		One:   "Скрипты в браузере выключены, поэтому страница обновляется раз в {n} секунду. Когда скачивание начнётся, её можно закрыть.",
		Few:   "Скрипты в браузере выключены, поэтому страница обновляется раз в {n} секунды. Когда скачивание начнётся, её можно закрыть.",
		Many:  "Скрипты в браузере выключены, поэтому страница обновляется раз в {n} секунд. Когда скачивание начнётся, её можно закрыть.",
		Other: "Скрипты в браузере выключены, поэтому страница обновляется раз в {n} секунды. Когда скачивание начнётся, её можно закрыть.",
	},
	months: [12]string{"января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября", "декабря"},
}

// scriptJSON gives the script's phrases as the value of a quoted attribute.
func (w *words) scriptJSON() string {
	b, err := json.Marshal(w.script)
	if err != nil {
		panic("waitpage: " + err.Error()) // strings only: cannot happen
	}
	return html.EscapeString(string(b))
}

// appendCount appends the form of a phrase that fits n.
func (w *words) appendCount(dst []byte, f *forms, n int) []byte {
	return fill(dst, w.plural(f, n), func(dst []byte, _ byte) []byte { return appendInt(dst, n) })
}

// appendDuration appends how long a start is away, in words; the script's inWords says the same.
func (w *words) appendDuration(dst []byte, d time.Duration) []byte {
	switch minutes := int(d.Round(time.Minute) / time.Minute); {
	case minutes < 1:
		return append(dst, w.script.Shortly...)
	case minutes < 90:
		return w.appendCount(dst, &w.script.Minutes, minutes)
	case minutes < 36*60:
		return w.appendCount(dst, &w.script.Hours, (minutes+30)/60)
	default:
		return w.appendCount(dst, &w.script.Days, (minutes+720)/1440)
	}
}
