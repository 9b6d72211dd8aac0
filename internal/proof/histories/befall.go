package histories

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// befall makes happen what is no single call's fault.
func (l *life) befall(s Step) error {
	f, pick := s.Fault, s.Pick
	switch f {
	case adversary.Skipped, adversary.Replaced, adversary.StateLost, adversary.Recreated, adversary.Aged, adversary.RulesChanged:
		l.crew.ExcuseVerify()
	}
	// Counted where it happens, if it does.
	if f != adversary.Woke && f != adversary.HandedOver && f != adversary.Replayed && f != adversary.Verifying &&
		f != adversary.Recounted && f != adversary.SetBack {
		l.crew.Counts[f]++
	}
	l.befallCrew(f)
	switch f {
	case adversary.Aged:
		return l.age()
	case adversary.Split, adversary.RolledOver:
		return l.reshard(f, pick)
	case adversary.Rewound:
		l.crew.CrashOne()
		return l.drop(leaseTableName)
	case adversary.Skipped:
		l.loseUnless(false)
		l.crew.ExpectGaps()
		l.crew.CrashOne()
		if _, err := l.crew.Sim.Trim(tableName, time.Now().Add(time.Nanosecond)); err != nil {
			return err
		}
		return l.drop(leaseTableName)
	case adversary.Replaced:
		l.loseUnless(s.Turns == Rest) // at rest nothing is lost with the former stream
		l.crew.KillAll()
		return errors.Join(l.stream(false), l.stream(true), l.drop(leaseTableName))
	case adversary.StateLost:
		return l.loseState()
	case adversary.RulesAdded:
		if !l.Changing {
			l.crew.World.RuleFile = l.Population.File
		}
	case adversary.Replayed:
		l.startReplay(s)
	case adversary.RulesChanged:
		l.crew.World.RuleFile = s.Rules
		l.startReplay(s)
	case adversary.Recreated:
		return l.recreate(pick)
	}
	return nil
}

// befallCrew makes happen what concerns the crew alone.
func (l *life) befallCrew(f adversary.Fault) {
	switch f {
	case adversary.CrashedBefore:
		l.crew.CrashOne()
	case adversary.Takeover:
		l.crew.Start()
	case adversary.Restart:
		l.crew.Stop()
	case adversary.Woke:
		l.crew.WakeOne()
	case adversary.HandedOver:
		l.crew.HandOver()
	case adversary.Slept:
		l.crew.Sleep(20 * time.Minute)
	case adversary.Drained:
		l.crew.StartDrain()
	case adversary.Verifying:
		l.crew.StartVerify()
	case adversary.Recounted:
		l.crew.Recount()
	case adversary.SetBack:
		l.crew.SetBack(l.FirstRules == "")
	}
}

const (
	// retention is longer than a stream holds its records and its closed shards.
	retention = 25 * time.Hour
	// shardLife is how long a shard stays open, written to or not, as users of DynamoDB Streams have seen it.
	shardLife = 4 * time.Hour
)

// age lets more time pass than a stream holds records, while the readers go
// on reading. No shard stays open for so long, unless a schedule says which do.
func (l *life) age() error {
	l.aged = true
	// A worker that sleeps for so long may put rows of shards that are gone by then, and finds
	// that the stream does not hold their records: that is as loud as a loss.
	l.fading = l.fading || l.crew.Asleep() > 0
	until := time.Now().Add(retention)
	for rolls := time.Now().Add(shardLife); time.Now().Before(until); l.crew.Turn() {
		if l.Name != "" || time.Now().Before(rolls) {
			continue // a schedule says itself what happens
		}
		rolls = rolls.Add(shardLife)
		l.crew.WakeIfRefused()
		open, err := l.crew.Sim.OpenShards(tableName)
		for _, shard := range open {
			_, failed := l.crew.Sim.RollOver(tableName, shard)
			err = errors.Join(err, failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) reshard(f adversary.Fault, pick uint64) error {
	open, err := l.crew.Sim.OpenShards(tableName)
	if err != nil || len(open) == 0 || len(open) > 6 {
		return err
	}
	shard := open[pick%uint64(len(open))]
	if f == adversary.Split {
		_, err = l.crew.Sim.SplitShard(tableName, shard)
	} else {
		_, err = l.crew.Sim.RollOver(tableName, shard)
	}
	return err
}

// drop deletes one of the engine's tables, if it is there.
func (l *life) drop(table string) error {
	if table == leaseTableName {
		l.crew.LeasesLost()
		l.fading = l.aged
	}
	_, err := l.crew.Sim.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
	var missing *ddb.ResourceNotFoundException
	if errors.As(err, &missing) {
		return nil
	}
	return err
}

// loseState deletes the state table and the checkpoints. Processes that sleep outlive that in schedules only: what they still write on
// items, by what was in force, is wrong until the next worker has come to it, and the random histories look at each write.
func (l *life) loseState() error {
	if len(l.crew.Strikes) > 0 {
		l.crew.KillAwake()
	} else {
		l.crew.KillAll()
	}
	l.startsOver = true
	return errors.Join(l.disown(), l.drop(leaseTableName), l.drop(stateTableName))
}

// recreate restores the table from a backup that holds most of its items, stamps included.
func (l *life) recreate(pick uint64) error {
	l.crew.KillAll()
	l.judgeFound()
	l.startsOver, l.restored = true, map[change.Key]bool{}
	backup, err := l.app.present()
	if err != nil {
		return err
	}
	if err := errors.Join(l.drop(tableName), l.drop(stateTableName), l.drop(leaseTableName), l.createTable(pick%2 == 0)); err != nil {
		return err
	}
	l.app.base, l.app.expired, l.app.kept = map[change.Key]change.Item{}, map[change.Key]bool{}, nil
	for i, it := range backup {
		if pick>>(i%60)&3 == 3 {
			continue
		}
		l.restored[l.Population.Key(it)] = true
		if err := l.app.put(it); err != nil {
			return err
		}
	}
	if pick%2 == 0 {
		return nil
	}
	return l.stream(true)
}
