package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// svg writes the chart as one SVG document that needs nothing from outside. It has a title and a description for those who do not see it.
func (c *chart) svg(to io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-labelledby="title about" font-family="sans-serif" font-size="13">`+"\n",
		c.width, c.height, c.width, c.height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n", escape(c.title), escape(c.describe()))
	fmt.Fprintf(&b, "<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", c.width, c.height)
	fmt.Fprintf(&b, "<text x=\"80\" y=\"36\" font-size=\"20\" font-weight=\"bold\">%s</text>\n<text x=\"80\" y=\"58\" fill=\"#444444\">%s</text>\n",
		escape(c.title), escape(c.about))
	for i := range c.panels {
		c.panels[i].svg(&b)
	}
	b.WriteString("</svg>\n")
	_, err := to.Write(b.Bytes())
	return err
}

// describe says in words what the curves are.
func (c *chart) describe() string {
	var all []string
	for _, p := range c.panels {
		var names []string
		for _, curve := range p.curves {
			names = append(names, curve.name)
		}
		all = append(all, p.title+": "+p.yTitle+" over "+p.xTitle+" for "+strings.Join(names, ", "))
	}
	return c.about + ". " + strings.Join(all, ". ") + "."
}

func (p *panel) svg(b *bytes.Buffer) {
	fmt.Fprintf(b, "<g>\n<text x=\"%g\" y=\"%g\" font-size=\"15\" font-weight=\"bold\">%s</text>\n", p.left, p.top-14, escape(p.title))
	for _, t := range p.xTicks {
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\" stroke=\"#dddddd\"/><text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
			t.at, p.top, t.at, p.bottom, t.at, p.bottom+18, escape(t.label))
	}
	for _, t := range p.yTicks {
		fmt.Fprintf(b, "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#dddddd\"/><text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			p.left, t.at, p.right, t.at, p.left-8, t.at+4, escape(t.label))
	}
	fmt.Fprintf(b, "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"#333333\"/>\n", p.left, p.top, p.bottom, p.right)
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", (p.left+p.right)/2, p.bottom+38, escape(p.xTitle))
	fmt.Fprintf(b, "<text transform=\"translate(%g %g) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", p.left-50, (p.top+p.bottom)/2, escape(p.yTitle))
	for i, c := range p.curves {
		line := fmt.Sprintf(`fill="none" stroke="#%02x%02x%02x" stroke-width="%g"`, c.colour[0], c.colour[1], c.colour[2], c.width)
		if len(c.dashes) > 0 {
			line += fmt.Sprintf(` stroke-dasharray="%s"`, strings.Trim(fmt.Sprint(c.dashes), "[]"))
		}
		b.WriteString(`<polyline points="`)
		for j, at := range c.points {
			if j > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(b, "%.1f,%.1f", at[0], at[1])
		}
		y := p.top + 10 + 24*float64(i)
		fmt.Fprintf(b, "\" %s><title>%s</title></polyline>\n", line, escape(c.name))
		fmt.Fprintf(b, "<path d=\"M%g %gh36\" %s/><text x=\"%g\" y=\"%g\">%s</text>\n", p.right+16, y, line, p.right+60, y+4, escape(c.name))
	}
	b.WriteString("</g>\n")
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
