package handlers

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spoiled is a record with a type of value that DynamoDB does not have.
func spoiled(record string) string {
	for _, image := range []string{`"NewImage":{`, `"OldImage":{`} {
		if before, after, ok := strings.Cut(record, image); ok {
			return before + image + `"bad":{"X":1},` + after
		}
	}
	panic("a record without images")
}

// A record that cannot be read may be the only one that shows a change: later
// records of its item have the changed attribute in both images.
func TestWhatOnlyAMalformedRecordShowedIsDerived(t *testing.T) {
	for name, change := range map[string]func(w *lambdaWorld){ // of whose records the first is malformed
		"a source that counts no more": func(w *lambdaWorld) {
			w.update("GROUP#g", "USER#2", "role", "banned")
			w.update("GROUP#g", "USER#2", "note", "x")
		},
		"a source that is gone": func(w *lambdaWorld) { w.remove("GROUP#g", "USER#2") },
		"a source that is new": func(w *lambdaWorld) {
			w.update("GROUP#g", "USER#3", "role", "member")
			w.items++
		},
		"a target that is new": func(w *lambdaWorld) {
			w.update("GROUP#h", "METADATA", "title", "H")
			w.items++
		},
		"a parent that its children copy": func(w *lambdaWorld) { w.update("USER#1", "PROFILE", "name", "new name") },
		"a parent that changes again elsewhere": func(w *lambdaWorld) {
			w.update("USER#1", "PROFILE", "name", "new name")
			w.update("USER#1", "PROFILE", "note", "x")
		},
		"a parent that is gone":            func(w *lambdaWorld) { w.remove("USER#1", "PROFILE") },
		"a child that overwrites its copy": func(w *lambdaWorld) { w.update("GROUP#g", "USER#1", "userName", "somebody's") },
	} {
		for shape, wrap := range map[string]func(...string) string{
			"stream": event, "late batch": func(rs ...string) string { return late(event(rs...)) },
		} {
			t.Run(name+", "+shape, func(t *testing.T) {
				w := newLambdaWorld(t)
				w.populate()
				w.drain()
				w.parked = 0
				change(w)
				records := w.records()
				records[0] = spoiled(records[0])
				w.invoke(wrap(records...))
				w.drain()
				if want := map[string]int{"stream": 1, "late batch": 0}[shape]; w.parked != want {
					t.Errorf("%d records are parked, want %d", w.parked, want)
				}
			})
		}
	}
}

// What was rederived is of a later state than a record of the same item that
// comes afterwards: from a queue, or because it failed before. No other record
// would follow that brings the later state back.
func TestAnEarlierRecordDoesNotUndoWhatAMalformedOneBrought(t *testing.T) {
	histories := map[string]func(w *lambdaWorld){ // of whose records the last is malformed
		"a source that counts again": func(w *lambdaWorld) {
			w.update("GROUP#g", "USER#2", "role", "banned")
			w.update("GROUP#g", "USER#2", "role", "member")
		},
		"a source that counts no more": func(w *lambdaWorld) {
			w.update("GROUP#g", "USER#2", "role", "admin")
			w.update("GROUP#g", "USER#2", "role", "banned")
		},
		"a source that came and went": func(w *lambdaWorld) {
			w.update("GROUP#g", "USER#3", "role", "member")
			w.items++
			w.remove("GROUP#g", "USER#3")
		},
		"a source that went and came": func(w *lambdaWorld) {
			w.remove("GROUP#g", "USER#2")
			w.update("GROUP#g", "USER#2", "role", "admin")
			w.items++
		},
		"a parent of another name again": func(w *lambdaWorld) {
			w.update("USER#1", "PROFILE", "name", "middle name")
			w.update("USER#1", "PROFILE", "name", "new name")
		},
		"a parent with its old name": func(w *lambdaWorld) {
			w.update("USER#1", "PROFILE", "name", "middle name")
			w.update("USER#1", "PROFILE", "name", "old name")
		},
		"a parent that is gone": func(w *lambdaWorld) {
			w.update("USER#1", "PROFILE", "name", "middle name")
			w.remove("USER#1", "PROFILE")
		},
	}
	deliveries := map[string]func(w *lambdaWorld, earlier, later string){
		"in one batch": func(w *lambdaWorld, earlier, later string) { w.invoke(event(earlier, later)) },
		"afterwards":   func(w *lambdaWorld, earlier, later string) { w.invoke(event(later)); w.invoke(event(earlier)) },
		"from a queue": func(w *lambdaWorld, earlier, later string) {
			w.invoke(event(message("2", later)))
			w.invoke(event(message("1", earlier)))
		},
		"of one queue": func(w *lambdaWorld, earlier, later string) {
			w.invoke(event(message("2", later), message("1", earlier)))
		},
		"behind a late": func(w *lambdaWorld, earlier, later string) { w.invoke(late(event(later))); w.invoke(event(earlier)) },
		"again and again": func(w *lambdaWorld, earlier, later string) {
			for range 2 {
				w.invoke(event(earlier, later))
				w.invoke(event(earlier))
			}
		},
		"without its position": func(w *lambdaWorld, earlier, later string) {
			w.invoke(event(earlier, strings.Replace(later, `"SequenceNumber"`, `"x"`, 1)))
		},
	}
	for _, history := range slices.Sorted(maps.Keys(histories)) {
		for _, delivery := range slices.Sorted(maps.Keys(deliveries)) {
			t.Run(history+", "+delivery, func(t *testing.T) {
				w := newLambdaWorld(t)
				w.populate()
				w.drain()
				histories[history](w)
				records := w.records()
				if len(records) != 2 {
					t.Fatal(strconv.Itoa(len(records)) + " records, want an earlier and a later one")
				}
				deliveries[delivery](w, records[0], spoiled(records[1]))
				w.drain()
			})
		}
	}
}
