package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var errNumber = errors.New("not a number with a known unit")

// byteUnits: decimal and binary, as written.
var byteUnits = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// bitUnits in bytes per second.
var bitUnits = map[string]float64{"bit": 1.0 / 8, "kbit": 1e3 / 8, "Kbit": 1e3 / 8, "Mbit": 1e6 / 8, "Gbit": 1e9 / 8, "Tbit": 1e12 / 8}

// number splits a text into its number and its unit.
func number(text string) (float64, string, error) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' })
	if end < 0 {
		end = len(text)
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text[:end], "_", ""), 64)
	if err != nil || math.IsInf(value, 0) {
		return 0, "", errNumber
	}
	return value, strings.TrimSpace(text[end:]), nil
}

func scaled(text string, units map[string]float64) (int64, error) {
	value, unit, err := number(text)
	if err != nil {
		return 0, err
	}
	factor, ok := units[unit]
	if !ok || value*factor > 1<<60 {
		return 0, errNumber
	}
	return int64(math.Round(value * factor)), nil
}

// parseBytes reads 4GB (decimal), 8MiB (binary), 4096.
func parseBytes(text string) (int64, error) { return scaled(text, byteUnits) }

// parseRate reads 1Gbit, 1Gbit/s, 125MB/s, 125MB as bytes per second.
func parseRate(text string) (int64, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "/s")
	if rate, err := scaled(text, bitUnits); err == nil {
		return rate, nil
	}
	return scaled(text, byteUnits)
}

// parseSizes reads 4GB..20GB, or one size for both ends.
func parseSizes(text string) (low, high int64, err error) {
	first, second, both := strings.Cut(text, "..")
	if !both {
		second = first
	}
	low, err = parseBytes(first)
	if err != nil {
		return 0, 0, err
	}
	high, err = parseBytes(second)
	return low, high, err
}

// parseShare reads 20% or 0.2.
func parseShare(text string) (float64, error) {
	value, unit, err := number(text)
	switch {
	case err != nil:
		return 0, err
	case unit == "%":
		return value / 100, nil
	case unit == "":
		return value, nil
	}
	return 0, errNumber
}

func parseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	return time.ParseDuration(text)
}

// showBytes writes a size as people do.
func showBytes(n int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if float64(n) >= u.size {
			return strconv.FormatFloat(float64(n)/u.size, 'g', 4, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%d B", n)
}

// showSeconds writes a time as people do, with two units at most.
func showSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case s < 60:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 3600:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case s < 48*3600:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}
