package main

import (
	"os"
	"slices"
	"strings"

	"github.com/posener/complete"
)

// settingNames are the fields of the live settings that are offered; a newer server may have more, which are taken all the same.
var settingNames = []string{
	"mode", "strategy", "sessions", "sessionsElastic", "reserve", "perPrincipal", "weights", "windows", "principals", "quotas", "sessionMinBytes", "idleSeconds", "agingMinutes",
	"preempt", "rangesPerSession",
}

// settingParts are the fields that have parts of known names.
var settingParts = map[string][]string{"weights": classNames, "windows": classNames, "quotas": {"bytesPerDay", "bytesPerWeek", "zone"}}

// deskPredictors are what the shell is offered for the arguments of queue, settings and sessions.
func deskPredictors(strategies []string) map[string]complete.Predictor {
	fields := slices.Clone(settingNames)
	var changes []string
	for _, name := range settingNames {
		var offered []string
		switch name {
		case "strategy":
			offered = strategies
		case "mode":
			offered = modeNames
		case "preempt":
			offered = []string{"true", "false"}
		}
		for _, part := range settingParts[name] {
			fields = append(fields, name+"."+part)
			changes = append(changes, name+"."+part+"=")
		}
		if len(settingParts[name]) == 0 && name != "principals" {
			changes = append(changes, name+"=")
		}
		for _, value := range offered {
			changes = append(changes, name+"="+value)
		}
	}
	return map[string]complete.Predictor{
		"classes": complete.PredictSet(classNames...),
		"ends":    complete.PredictSet("front", "back"),
		"fields":  complete.PredictSet(fields...),
		"changes": changePredictor(changes),
	}
}

// changePredictor offers FIELD=VALUE. What completes splits the last word at its =, as bash does: then the values alone are offered.
type changePredictor []string

// Predict offers what begins as the last word does.
func (c changePredictor) Predict(a complete.Args) []string {
	behind := strings.HasSuffix(os.Getenv("COMP_LINE"), " "+a.LastCompleted+"="+a.Last)
	var all []string
	for _, one := range c {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case !behind && value == "" && strings.HasPrefix(name, a.Last):
			all = append(all, one)
		case behind && value != "" && name == a.LastCompleted && strings.HasPrefix(value, a.Last):
			all = append(all, value)
		}
	}
	return all
}
