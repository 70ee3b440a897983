package waitpage

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestV4_AcceptLanguage(t *testing.T) {
	for field, want := range map[string]string{
		"":                               "en",
		"en":                             "en",
		"ru":                             "ru",
		"RU-ru":                          "ru",
		"ru-RU,ru;q=0.9,en-US;q=0.8":     "ru",
		"en-US,en;q=0.9,ru;q=0.8":        "en",
		"en;q=0.5,ru":                    "ru",
		"en;q=0.5 , ru;q=0.501":          "ru",
		"en;q=0.5,ru;q=0.5":              "en",
		"ru;q=0.5,en;q=0.5":              "ru",
		"de,fr;q=0.9":                    "en",
		"de,ru;q=0.1":                    "ru",
		"*":                              "en",
		"*, ru":                          "en",
		"ru, *":                          "ru",
		"en;q=0, *":                      "ru",
		"ru;q=0, *":                      "en",
		"ru;q=0":                         "en",
		"en;q=0,ru;q=0":                  "en",
		"*;q=0":                          "en",
		"en;q=0.3,*;q=0.8":               "ru",
		"ru;q=0.0, ru;q=0.7":             "ru",
		"ru;q=2":                         "en",
		"ru;q=1.001":                     "en",
		"ru;q=1.000":                     "ru",
		"ru;Q=0.5":                       "ru",
		"ru;q=0.5555":                    "en",
		"ru;q=,en;q=0.1":                 "en",
		"ru;x=1":                         "en",
		"ru;q=0,5":                       "en",
		"ru ; q=0.4":                     "ru",
		",,;,ru":                         "ru",
		"run,rus,r-u":                    "en",
		"ru\x00,\xff":                    "en",
		strings.Repeat("de,", 31) + "ru": "ru",
		strings.Repeat("de,", 32) + "ru": "en",
		strings.Repeat("ru-", 1<<16):     "ru",
	} {
		if got := languages[choose(field)].tag; got != want {
			t.Errorf("%.60q chooses %s, want %s", field, got, want)
		}
	}
}

// visible is what a reader sees of a fragment.
func visible(fragment []byte) string {
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(fragment), ""))
}

func TestV4_WhenItStarts(t *testing.T) {
	for _, one := range []struct {
		starts, earliest, latest time.Duration
		en, ru                   string
	}{
		{-time.Second, 0, 0, "any moment now", "с минуты на минуту"},
		{0, 0, 0, "any moment now", "с минуты на минуту"},
		{29 * time.Second, 0, 0, "about 12:00 UTC (in less than a minute)", "около 12:00 UTC (меньше чем через минуту)"},
		{time.Minute, 0, 0, "about 12:01 UTC (in 1 minute)", "около 12:01 UTC (через 1 минуту)"},
		{3 * time.Minute, 0, 0, "about 12:03 UTC (in 3 minutes)", "около 12:03 UTC (через 3 минуты)"},
		{11 * time.Minute, 0, 0, "about 12:11 UTC (in 11 minutes)", "около 12:11 UTC (через 11 минут)"},
		{21 * time.Minute, 0, 0, "about 12:21 UTC (in 21 minutes)", "около 12:21 UTC (через 21 минуту)"},
		{89 * time.Minute, 0, 0, "about 13:29 UTC (in 89 minutes)", "около 13:29 UTC (через 89 минут)"},
		{90 * time.Minute, 0, 0, "about 13:30 UTC (in about 2 hours)", "около 13:30 UTC (примерно через 2 часа)"},
		{13 * time.Hour, 0, 0, "about 1 April, 01:00 UTC (in about 13 hours)", "около 1 апреля, 01:00 UTC (примерно через 13 часов)"},
		{36 * time.Hour, 0, 0, "about 2 April, 00:00 UTC (in about 2 days)", "около 2 апреля, 00:00 UTC (примерно через 2 дня)"},
		// One time is honest while the interval is at most two minutes or a fifth of the wait.
		{4 * time.Minute, 3 * time.Minute, 5 * time.Minute, "about 12:04 UTC (in 4 minutes)", "около 12:04 UTC (через 4 минуты)"},
		{4 * time.Minute, 3 * time.Minute, 6 * time.Minute, "between 12:03 UTC and 12:06 UTC", "между 12:03 UTC и 12:06 UTC"},
		{40 * time.Minute, 38 * time.Minute, 46 * time.Minute, "about 12:40 UTC (in 40 minutes)", "около 12:40 UTC (через 40 минут)"},
		{40 * time.Minute, 38 * time.Minute, 47 * time.Minute, "between 12:38 UTC and 12:47 UTC", "между 12:38 UTC и 12:47 UTC"},
		{5 * time.Minute, -5 * time.Minute, 13 * time.Hour, "between 12:00 UTC and 1 April, 01:00 UTC", "между 12:00 UTC и 1 апреля, 01:00 UTC"},
		{5 * time.Minute, 60 * time.Minute, 2 * time.Minute, "about 12:05 UTC (in 5 minutes)", "около 12:05 UTC (через 5 минут)"},
	} {
		f := Facts{Now: noon, StartsAt: noon.Add(one.starts)}
		if one.latest != 0 {
			f.Earliest, f.Latest = noon.Add(one.earliest), noon.Add(one.latest)
		}
		// The zone of the facts is not that of the page.
		f.StartsAt = f.StartsAt.In(time.FixedZone("", 5*3600+1800))
		if got := visible(english.appendWhen(nil, &f)); got != one.en {
			t.Errorf("starts in %v: %q, want %q", one.starts, got, one.en)
		}
		if got := visible(russian.appendWhen(nil, &f)); got != one.ru {
			t.Errorf("starts in %v: %q, want %q", one.starts, got, one.ru)
		}
	}
	for _, f := range []Facts{{}, {Now: noon}, {StartsAt: noon}, {Now: noon, Earliest: noon, Latest: noon.Add(time.Hour)}} {
		if got := visible(english.appendWhen(nil, &f)); got != "not known yet" {
			t.Errorf("%+v: %q, want that it is not known", f, got)
		}
	}
	if got, want := string(english.appendTime(nil, noon, noon)), `<time datetime="2026-03-31T12:00:00Z">12:00 UTC</time>`; got != want {
		t.Errorf("time element %s, want %s", got, want)
	}
}

func TestV4_PlaceAndPlurals(t *testing.T) {
	for position, want := range map[int][2]string{
		-1:  {"not known yet|", "пока неизвестно|"},
		0:   {"not known yet|", "пока неизвестно|"},
		1:   {"1|Yours is the next one.", "1|Следующее скачивание – ваше."},
		2:   {"2|1 download is ahead of yours.", "2|Впереди 1 скачивание."},
		3:   {"3|2 downloads are ahead of yours.", "3|Впереди 2 скачивания."},
		6:   {"6|5 downloads are ahead of yours.", "6|Впереди 5 скачиваний."},
		12:  {"12|11 downloads are ahead of yours.", "12|Впереди 11 скачиваний."},
		22:  {"22|21 downloads are ahead of yours.", "22|Впереди 21 скачивание."},
		112: {"112|111 downloads are ahead of yours.", "112|Впереди 111 скачиваний."},
		123: {"123|122 downloads are ahead of yours.", "123|Впереди 122 скачивания."},
	} {
		for i, language := range []string{"en", "ru"} {
			page := document(Facts{Position: position, Language: language})
			place, ahead, _ := strings.Cut(want[i], "|")
			if fragment := `<dd id="place">` + place + `</dd><dd class="soft" id="ahead">` + ahead + `</dd>`; !strings.Contains(page, fragment) {
				t.Errorf("place %d in %s: the page has no %s", position, language, fragment)
			}
			if position > 0 {
				continue
			}
			if title := `<title>` + strings.NewReplacer("{f}", languages[i].file).Replace(languages[i].script.TitleUnknown) + `</title>`; !strings.Contains(page, title) {
				t.Errorf("place %d in %s: no %s", position, language, title)
			}
		}
	}
	if page := document(Facts{Name: "a<b", Position: 12}); !strings.Contains(page, "<title>Place 12 in the queue – a&lt;b</title>") {
		t.Error("the title does not name the place")
	}
}

// TestV4_PhrasesAreWhole: both languages have every phrase, with the same things to fill in.
func TestV4_PhrasesAreWhole(t *testing.T) {
	keys := regexp.MustCompile(`\{.?.?`)
	phrases := func(w *words) []string {
		s := &w.script
		all := []string{s.Title, s.TitleUnknown, s.StartedTitle, s.StartedHead, s.UnknownPlace, s.Next, s.About, s.Between, s.Soon, s.UnknownStart, s.Shortly, s.Said,
			s.Waiting, s.NotYet, s.Lost, s.Started, s.Again, w.head, w.file, w.placeLabel, w.whenLabel, w.barLabel, w.yielded, w.keep, w.close, w.now}
		for _, f := range []*forms{&s.Ahead, &s.Minutes, &s.Hours, &s.Days, &w.noScript} {
			all = append(all, f.Other)
			for n := range 30 {
				if form := w.plural(f, n); !strings.Contains(form, "{n}") {
					t.Errorf("%s: the form for %d is %q", w.tag, n, form)
				}
			}
		}
		return all
	}
	first := phrases(&languages[0])
	for i := range languages {
		for j, phrase := range phrases(&languages[i]) {
			if phrase == "" || html.EscapeString(phrase) != phrase {
				t.Errorf("%s: phrase %d is empty or has markup: %q", languages[i].tag, j, phrase)
			}
			if got, want := keys.FindAllString(phrase, -1), keys.FindAllString(first[j], -1); strings.Join(got, "") != strings.Join(want, "") {
				t.Errorf("%s: %q fills in %v, want %v", languages[i].tag, phrase, got, want)
			}
		}
	}
}
