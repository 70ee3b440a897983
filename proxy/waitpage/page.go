package waitpage

import (
	"html"
	"strconv"
	"strings"
	"time"
)

// ContentType is the media type of the page.
const ContentType = "text/html; charset=utf-8"

// ContentSecurityPolicy is the field Content-Security-Policy that the page must be sent with. It admits the page's own script and style by their
// hashes, questions to the page's own origin and the empty icon (which spares the origin a request for one), and nothing else.
const ContentSecurityPolicy = "default-src 'none'; " +
	"script-src 'sha256-ga01D1uJEh+xZOXCqr3r/z2LzMhDsIIa/ieEx098mFY='; style-src 'sha256-gc6Vk8PO517Hp5i0xsBIrTlO/mCIZhRqpwGfKuN3Rqs='; " +
	"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// PollField is the request field, with the value 1, by which the page's script asks about its place instead of for the file.
const PollField = "Arkvory-Waiting-Page"

// Bounds of the waits that the page is told, in seconds: between questions of the script, and between loads of a page without scripts.
const (
	minPoll, maxPoll       = 1, 300
	minRefresh, maxRefresh = 5, 60
)

// Facts is what the page says. The zero value is a page that knows nothing yet.
type Facts struct {
	// Name is the file's name, percent-decoded as far as that makes sense. It may be any bytes; an empty one is shown as "the file".
	Name string
	// Position in the queue, from 1; 0 or less when it is not known.
	Position int
	// StartsAt is the estimated start, Earliest and Latest its interval. Zero when not known; an interval without StartsAt is not shown.
	StartsAt, Earliest, Latest time.Time
	// Now is the wall time of the answer; when it is zero, no start is shown.
	Now time.Time
	// RetryAfter is when to ask again, in seconds; used within 1..300 by the script, 5..60 without scripts.
	RetryAfter int
	// Language is the request's Accept-Language field as it came, "" when there was none.
	Language string
	// Yielded tells that the download had a slot and made way for another one.
	Yielded bool
}

// frame is the fixed text of the page in one language, between the facts.
type frame struct {
	*words
	toTitle, toRefresh, toData, toName, toPlace, toAhead, toWhen, toRest, toAsk, end string
}

var frames = func() (all [len(languages)]frame) {
	for i := range languages {
		all[i] = newFrame(&languages[i])
	}
	return all
}()

func newFrame(w *words) frame {
	text := html.EscapeString
	return frame{words: w,
		toTitle: "<!DOCTYPE html>\n<html lang=\"" + w.tag + "\">\n<head>\n<meta charset=\"utf-8\">\n<title>",
		toRefresh: "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n" +
			"<meta name=\"referrer\" content=\"same-origin\">\n<meta name=\"robots\" content=\"noindex\">\n<link rel=\"icon\" href=\"data:,\">\n" +
			"<noscript><meta http-equiv=\"refresh\" content=\"",
		toData: "\"></noscript>\n<style>" + style + "</style>\n</head>\n<body>\n<main id=\"wait\" data-field=\"" + PollField +
			"\" data-words=\"" + w.scriptJSON() + "\"",
		toName:  ">\n<h1 id=\"head\">" + text(w.head) + "</h1>\n<p class=\"soft\"><bdi id=\"name\">",
		toPlace: "<div id=\"facts\">\n<dl>\n<div><dt>" + text(w.placeLabel) + "</dt><dd id=\"place\">",
		toAhead: "</dd><dd class=\"soft\" id=\"ahead\">",
		toWhen:  "</dd></div>\n<div><dt>" + text(w.whenLabel) + "</dt><dd id=\"when\">",
		toRest: "</dd></div>\n</dl>\n</div>\n<progress id=\"bar\" aria-label=\"" + text(w.barLabel) + "\"></progress>\n" +
			"<div role=\"status\" aria-live=\"polite\"><span id=\"state\">" + text(w.script.Waiting) + "</span> <span class=\"said\" id=\"said\"></span></div>\n" +
			"<div id=\"keep\">\n<p>" + text(w.keep) + "</p>\n<p>" + text(w.close) + "</p>\n</div>\n<noscript><p>",
		toAsk: "</p></noscript>\n<p><a id=\"now\" href=\"\">" + text(w.now) + "</a></p>\n</main>\n<script>",
		end:   script + "</script>\n</body>\n</html>\n",
	}
}

// Append appends the whole HTML document for f to dst and returns it: UTF-8, less than 16 KiB whatever f holds, with no byte of Name or
// Language unescaped. It allocates nothing when dst has the room, cannot fail, and is safe for any number of goroutines.
func Append(dst []byte, f Facts) []byte {
	c := &frames[choose(f.Language)]
	refresh := min(max(f.RetryAfter, minRefresh), maxRefresh)
	dst = append(dst, c.toTitle...)
	dst = c.appendTitle(dst, &f)
	dst = append(dst, c.toRefresh...)
	dst = appendInt(dst, refresh)
	dst = append(dst, c.toData...)
	dst = appendData(dst, &f)
	dst = append(dst, c.toName...)
	dst = c.appendFile(dst, &f)
	dst = append(dst, "</bdi></p>\n"...)
	if f.Yielded {
		dst = append(dst, "<p>"...)
		dst = append(dst, c.yielded...)
		dst = append(dst, "</p>\n"...)
	}
	dst = append(dst, c.toPlace...)
	switch {
	case f.Position > 0:
		dst = appendInt(dst, f.Position)
	default:
		dst = append(dst, c.script.UnknownPlace...)
	}
	dst = append(dst, c.toAhead...)
	switch {
	case f.Position > 1:
		dst = c.appendCount(dst, &c.script.Ahead, f.Position-1)
	case f.Position == 1:
		dst = append(dst, c.script.Next...)
	}
	dst = append(dst, c.toWhen...)
	dst = c.appendWhen(dst, &f)
	dst = append(dst, c.toRest...)
	dst = c.appendCount(dst, &c.noScript, refresh)
	dst = append(dst, c.toAsk...)
	return append(dst, c.end...)
}

func (w *words) appendTitle(dst []byte, f *Facts) []byte {
	phrase := w.script.TitleUnknown
	if f.Position > 0 {
		phrase = w.script.Title
	}
	return fill(dst, phrase, func(dst []byte, key byte) []byte {
		if key == 'n' {
			return appendInt(dst, f.Position)
		}
		return w.appendFile(dst, f)
	})
}

func (w *words) appendFile(dst []byte, f *Facts) []byte {
	if f.Name == "" {
		return append(dst, w.file...)
	}
	return appendName(dst, f.Name)
}

// appendWhen appends when the download starts; the script's function when says the same.
func (w *words) appendWhen(dst []byte, f *Facts) []byte {
	if f.StartsAt.IsZero() || f.Now.IsZero() {
		return append(dst, w.script.UnknownStart...)
	}
	wait := f.StartsAt.Sub(f.Now)
	if wait <= 0 {
		return append(dst, w.script.Soon...)
	}
	earliest := f.Earliest
	if earliest.Before(f.Now) {
		earliest = f.Now
	}
	phrase := w.script.About
	if f.wide(wait) {
		phrase = w.script.Between
	}
	return fill(dst, phrase, func(dst []byte, key byte) []byte {
		switch key {
		case 'a':
			return w.appendTime(dst, earliest, f.Now)
		case 'b':
			return w.appendTime(dst, f.Latest, f.Now)
		case 't':
			return w.appendTime(dst, f.StartsAt, f.Now)
		}
		return w.appendDuration(dst, wait)
	})
}

// wide reports whether the estimate is too rough for one time to be honest: over two minutes and over a fifth of the wait.
func (f *Facts) wide(wait time.Duration) bool {
	if f.Earliest.IsZero() || f.Latest.IsZero() {
		return false
	}
	width := f.Latest.Sub(f.Earliest)
	return width > 2*time.Minute && width > wait/5
}

// appendTime appends a time element in UTC, with the day when it is not today.
func (w *words) appendTime(dst []byte, t, now time.Time) []byte {
	t, now = t.UTC(), now.UTC()
	dst = append(dst, "<time datetime=\""...)
	dst = t.AppendFormat(dst, time.RFC3339)
	dst = append(dst, "\">"...)
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		dst = appendInt(dst, t.Day())
		dst = append(dst, ' ')
		dst = append(dst, w.months[t.Month()-1]...)
		dst = append(dst, ", "...)
	}
	dst = t.AppendFormat(dst, "15:04")
	return append(dst, " UTC</time>"...)
}

// appendData appends the facts as attributes for the script.
func appendData(dst []byte, f *Facts) []byte {
	dst = append(dst, " data-position=\""...)
	dst = appendInt(dst, max(f.Position, 0))
	dst = append(dst, "\" data-retry=\""...)
	dst = appendInt(dst, min(max(f.RetryAfter, minPoll), maxPoll))
	dst = append(dst, '"')
	if f.Now.IsZero() {
		return dst
	}
	for _, one := range [...]struct {
		name string
		at   time.Time
	}{{"now", f.Now}, {"starts", f.StartsAt}, {"earliest", f.Earliest}, {"latest", f.Latest}} {
		if one.at.IsZero() {
			continue
		}
		dst = append(dst, " data-"...)
		dst = append(dst, one.name...)
		dst = append(dst, "=\""...)
		dst = one.at.UTC().AppendFormat(dst, time.RFC3339)
		dst = append(dst, '"')
	}
	return dst
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// fill appends a phrase; put appends what stands for a letter in braces.
func fill(dst []byte, phrase string, put func(dst []byte, key byte) []byte) []byte {
	for {
		before, after, found := strings.Cut(phrase, "{")
		dst = append(dst, before...)
		if !found {
			return dst
		}
		dst = put(dst, after[0])
		phrase = after[2:]
	}
}
