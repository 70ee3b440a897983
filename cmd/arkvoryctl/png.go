package main

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

// sharp is the pixels of the picture a pixel of the chart.
const sharp = 2

// pixels is a picture under work with the colour in use.
type pixels struct {
	*image.RGBA
	pen color.RGBA
}

func (p *pixels) use(r, g, b uint8) { p.pen = color.RGBA{r, g, b, 255} }

// block fills a square from its upper left corner.
func (p *pixels) block(x, y, size int) {
	for dy := range size {
		for dx := range size {
			p.SetRGBA(x+dx, y+dy, p.pen)
		}
	}
}

// line draws one stretch of a line of that width; gone is how far along its dashes it begins, and how far it ends is returned.
func (p *pixels) line(x0, y0, x1, y1 float64, width int, dashes []float64, gone float64) float64 {
	length := math.Hypot(x1-x0, y1-y0)
	cycle := 0.0
	for _, d := range dashes {
		cycle += d * sharp
	}
	for at := 0.0; at <= length; at += 0.5 {
		if cycle > 0 {
			on, rest := true, math.Mod(gone+at, cycle)
			for _, d := range dashes {
				if rest < d*sharp {
					break
				}
				rest -= d * sharp
				on = !on
			}
			if !on {
				continue
			}
		}
		f := 0.0
		if length > 0 {
			f = at / length
		}
		p.block(int(math.Round(x0+(x1-x0)*f))-width/2, int(math.Round(y0+(y1-y0)*f))-width/2, width)
	}
	return gone + length
}

// png writes the chart as one PNG picture, twice as fine as the SVG.
func (c *chart) png(to io.Writer) error {
	p := &pixels{RGBA: image.NewRGBA(image.Rect(0, 0, int(c.width)*sharp, int(c.height)*sharp))}
	for i := range p.Pix {
		p.Pix[i] = 255
	}
	p.use(0, 0, 0)
	p.text(c.title, 80*sharp, 40*sharp, 2*sharp, false)
	p.use(68, 68, 68)
	p.text(c.about, 80*sharp, 60*sharp, sharp, false)
	for i := range c.panels {
		c.panels[i].draw(p)
	}
	return png.Encode(to, p)
}

func (a *panel) draw(p *pixels) {
	at := func(v float64) int { return int(math.Round(v * sharp)) }
	p.use(0, 0, 0)
	p.text(a.title, at(a.left), at(a.top-12), sharp+1, false)
	for _, t := range a.xTicks {
		p.use(221, 221, 221)
		p.line(t.at*sharp, a.top*sharp, t.at*sharp, a.bottom*sharp, 1, nil, 0)
		p.use(0, 0, 0)
		p.text(t.label, at(t.at)-textWidth(t.label, sharp)/2, at(a.bottom+18), sharp, false)
	}
	for _, t := range a.yTicks {
		p.use(221, 221, 221)
		p.line(a.left*sharp, t.at*sharp, a.right*sharp, t.at*sharp, 1, nil, 0)
		p.use(0, 0, 0)
		p.text(t.label, at(a.left-8)-textWidth(t.label, sharp), at(t.at+4), sharp, false)
	}
	p.use(51, 51, 51)
	p.line(a.left*sharp, a.top*sharp, a.left*sharp, a.bottom*sharp, 2, nil, 0)
	p.line(a.left*sharp, a.bottom*sharp, a.right*sharp, a.bottom*sharp, 2, nil, 0)
	p.use(0, 0, 0)
	p.text(a.xTitle, at((a.left+a.right)/2)-textWidth(a.xTitle, sharp)/2, at(a.bottom+38), sharp, false)
	p.text(a.yTitle, at(a.left-46), at((a.top+a.bottom)/2)+textWidth(a.yTitle, sharp)/2, sharp, true)
	for i, c := range a.curves {
		p.use(c.colour[0], c.colour[1], c.colour[2])
		gone := 0.0
		for j := 1; j < len(c.points); j++ {
			from, to := c.points[j-1], c.points[j]
			gone = p.line(from[0]*sharp, from[1]*sharp, to[0]*sharp, to[1]*sharp, at(c.width), c.dashes, gone)
		}
		y := a.top + 10 + 24*float64(i)
		p.line((a.right+16)*sharp, y*sharp, (a.right+52)*sharp, y*sharp, at(c.width), c.dashes, 0)
		p.use(0, 0, 0)
		p.text(c.name, at(a.right+60), at(y+4), sharp, false)
	}
}
