package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalSize returns how large a console's window is, zeros when it does not say.
func terminalSize(f *os.File) (columns, rows int) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}
