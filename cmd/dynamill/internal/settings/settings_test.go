package settings

import "testing"

func TestLeaseTableNameFollowsStateTableName(t *testing.T) {
	for _, c := range []struct{ table, stateTable, want string }{
		{"app", "", "app-dynamill-leases"},
		{"app", "app-dynamill", "app-dynamill-leases"},
		{"app", "team2", "team2-leases"},
	} {
		o := &Settings{StateTable: c.stateTable}
		if got := o.LeaseTableName(c.table); got != c.want {
			t.Errorf("table %s, state table %q: the lease table is %s, want %s", c.table, c.stateTable, got, c.want)
		}
	}
}
