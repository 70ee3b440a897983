package main

import "strings"

// glyphs are capital letters, digits and signs of 5 by 7 points for pictures in points; small letters are drawn as capitals. Rows
// stand from top to bottom, five points each.
var glyphs = map[rune][7]uint8{
	'A': {14, 17, 17, 31, 17, 17, 17}, 'B': {30, 17, 17, 30, 17, 17, 30}, 'C': {14, 17, 16, 16, 16, 17, 14}, 'D': {30, 17, 17, 17, 17, 17, 30},
	'E': {31, 16, 16, 30, 16, 16, 31}, 'F': {31, 16, 16, 30, 16, 16, 16}, 'G': {14, 17, 16, 23, 17, 17, 15}, 'H': {17, 17, 17, 31, 17, 17, 17},
	'I': {14, 4, 4, 4, 4, 4, 14}, 'J': {1, 1, 1, 1, 1, 17, 14}, 'K': {17, 18, 20, 24, 20, 18, 17}, 'L': {16, 16, 16, 16, 16, 16, 31},
	'M': {17, 27, 21, 21, 17, 17, 17}, 'N': {17, 25, 21, 19, 17, 17, 17}, 'O': {14, 17, 17, 17, 17, 17, 14}, 'P': {30, 17, 17, 30, 16, 16, 16},
	'Q': {14, 17, 17, 17, 21, 18, 13}, 'R': {30, 17, 17, 30, 20, 18, 17}, 'S': {15, 16, 16, 14, 1, 1, 30}, 'T': {31, 4, 4, 4, 4, 4, 4},
	'U': {17, 17, 17, 17, 17, 17, 14}, 'V': {17, 17, 17, 17, 17, 10, 4}, 'W': {17, 17, 17, 21, 21, 27, 17}, 'X': {17, 17, 10, 4, 10, 17, 17},
	'Y': {17, 17, 10, 4, 4, 4, 4}, 'Z': {31, 1, 2, 4, 8, 16, 31},
	'0': {14, 17, 19, 21, 25, 17, 14}, '1': {4, 12, 4, 4, 4, 4, 14}, '2': {14, 17, 1, 6, 8, 16, 31}, '3': {30, 1, 1, 14, 1, 1, 30},
	'4': {2, 6, 10, 18, 31, 2, 2}, '5': {31, 16, 30, 1, 1, 17, 14}, '6': {14, 16, 30, 17, 17, 17, 14}, '7': {31, 1, 2, 4, 8, 8, 8},
	'8': {14, 17, 17, 14, 17, 17, 14}, '9': {14, 17, 17, 15, 1, 1, 14},
	'.': {0, 0, 0, 0, 0, 12, 12}, ',': {0, 0, 0, 0, 12, 4, 8}, '-': {0, 0, 0, 14, 0, 0, 0}, '/': {1, 1, 2, 4, 8, 16, 16},
	'%': {24, 25, 2, 4, 8, 19, 3}, '(': {2, 4, 8, 8, 8, 4, 2}, ')': {8, 4, 2, 2, 2, 4, 8}, ':': {0, 12, 12, 0, 12, 12, 0}, '+': {0, 4, 4, 31, 4, 4, 0},
	'_': {0, 0, 0, 0, 0, 0, 31}, ' ': {},
}

// unknown is drawn for a sign without a glyph.
var unknown = [7]uint8{31, 17, 17, 17, 17, 17, 31}

// Points of one sign with the gap after it.
const glyphWidth = 6

// text draws a text with its lower left corner at x, y; size is pixels a point; up turns it a quarter to the left.
func (p *pixels) text(text string, x, y, size int, up bool) {
	for i, sign := range []rune(strings.ToUpper(text)) {
		rows, ok := glyphs[sign]
		if !ok {
			rows = unknown
		}
		for row, bits := range rows {
			for column := range 5 {
				if bits&(16>>column) == 0 {
					continue
				}
				right, above := (i*glyphWidth+column)*size, (7-row)*size
				if up {
					p.block(x-above, y-right-size, size)
				} else {
					p.block(x+right, y-above, size)
				}
			}
		}
	}
}

// textWidth is the width of a text in pixels.
func textWidth(text string, size int) int { return len([]rune(text))*glyphWidth*size - size }
