package verify_test

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const clubRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:  { copy: name as userName, from: User, to: Member }
  member-count: { count: Membership, as: Group.memberCount, write_shards: 4 }
`

// made is a table that is made up as it is read: each of n numbers gives some items.
type made struct {
	n    int
	give func(i int, emit func(change.Item) error) error
}

func (m made) Each(ctx context.Context, f func(change.Item) error) error {
	const segments = 4
	g, ctx := errgroup.WithContext(ctx)
	for s := range segments {
		g.Go(func() error {
			for i := s; i < m.n && ctx.Err() == nil; i += segments {
				if err := m.give(i, f); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

func texts(pairs ...string) change.Item {
	it := change.Item{}
	for i := 0; i < len(pairs); i += 2 {
		it[pairs[i]] = change.String(pairs[i+1])
	}
	return it
}

// club is a table of groups and users, two memberships each, with all that is
// derived, as right as an engine would leave it: 5.1 items and 3.4 rows for each user.
func club(users int, incarnation string) (items, rows made) {
	groups := max(1, users/10)
	groupOf := func(i, k int) string { return strconv.Itoa((i + k*(groups/2+1)) % groups) }
	members := make([]int32, groups)
	for i := range users {
		for k := range 2 {
			g, _ := strconv.Atoi(groupOf(i, k))
			members[g]++
		}
	}
	role, joined := change.String("member"), change.String("2025-01-01")
	digest := oracle.ShortDigest(8, joined, role) // in the order of their names
	stamp := func(key change.Key) string {
		return oracle.ShortDigest(8, change.String(incarnation), change.String(key.String()), change.String("")) + "0--" + digest
	}
	items = made{users, func(i int, emit func(change.Item) error) error {
		user := strconv.Itoa(i)
		all := []change.Item{texts("pk", "USER#"+user, "sk", "PROFILE", "name", "user "+user)}
		for k := range 2 {
			g := groupOf(i, k)
			target := change.Key{Partition: "GROUP#" + g, Sort: "USER#" + user}
			all = append(all,
				change.Item{"pk": change.String("USER#" + user), "sk": change.String("GROUP#" + g), "role": role, "joinedAt": joined},
				change.Item{
					"pk": change.String(target.Partition), "sk": change.String(target.Sort), "role": role, "joinedAt": joined,
					"userName": change.String("user " + user), stampName("member-list"): change.String(stamp(target)),
				})
		}
		if i < groups {
			all = append(all, change.Item{
				"pk": change.String("GROUP#" + user), "sk": change.String("METADATA"), "memberCount": change.Number(strconv.Itoa(int(members[i]))),
			})
		}
		return giveAll(all, emit)
	}}
	rows = made{users, func(i int, emit func(change.Item) error) error {
		user := strconv.Itoa(i)
		var all []change.Item
		for k := range 2 {
			g := groupOf(i, k)
			source, target := change.Key{Partition: "USER#" + user, Sort: "GROUP#" + g}, change.Key{Partition: "GROUP#" + g, Sort: "USER#" + user}
			entry := texts("pk", "i/"+source.String(), "sk", "e", "a", "0-")
			entry["e"] = oracle.EffectsValue(map[string]string{
				oracle.RuleID("member-list"):  "=" + digest[:4] + target.String(),
				oracle.RuleID("member-count"): "*GROUP#" + g + "/METADATA",
			})
			all = append(all, entry, texts("pk", "ref/"+oracle.RuleID("member-name")+"/USER#"+user+"/PROFILE", "sk", target.String(), "a", "0-"))
		}
		for suffix := 0; i < groups && suffix < 4; suffix++ {
			n := int(members[i]) / 4
			if suffix == 0 {
				n += int(members[i]) % 4
			}
			sum := texts("pk", fmt.Sprintf("sum/"+oracle.RuleID("member-count")+"/GROUP#%d%%2FMETADATA/%d", i, suffix), "sk", "a")
			sum["value"], sum["members"], sum["ops"] = change.Number(strconv.Itoa(n)), change.Number(strconv.Itoa(n)), change.Number("9")
			all = append(all, sum)
		}
		return giveAll(all, emit)
	}}
	return items, rows
}

func giveAll(items []change.Item, emit func(change.Item) error) error {
	for _, it := range items {
		if err := emit(it); err != nil {
			return err
		}
	}
	return nil
}
