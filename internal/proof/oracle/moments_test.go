package oracle

import (
	"strings"
	"testing"
)

// groupsMoment has something of everything but claims and locators: a note that
// cannot name its author, points that are no number, a membership that ended,
// and a deleted user.
func groupsMoment(t *testing.T) moment {
	return after(t, groupsRules,
		"USER#ada PROFILE name=Ada", "USER#ben PROFILE name=Ben", "USER#cid PROFILE name=Cid",
		"GROUP#dev METADATA name=Developers", "GROUP#ops METADATA name=Operations",
		"USER#ada GROUP#dev role=admin points:5", "USER#ben GROUP#dev role=member points:2",
		"USER#ben GROUP#ops role=member points=many", "USER#ada GROUP#ops role=member points:1",
		"NOTE#1 METADATA userId=ada", "NOTE#2 METADATA userId=a#b", "OTHER#1 THING x=y", "",
		"USER#ada PROFILE name=Adele", "USER#ben GROUP#dev role=banned points:2", "- USER#ada GROUP#ops", "- USER#cid PROFILE")
}

// likesMoment has an order that two customers ask for, one that no customer asks for
// any more, a post of two authors and a unique value that nothing has any more.
func likesMoment(t *testing.T) moment {
	return after(t, likesRules,
		"USER#ada POST#p1", "USER#ben POST#p1", "USER#ben POST#p2", "USER#ada LIKE#p1", "USER#ben LIKE#p1", "",
		"CUSTOMER#1 ORDER#a total:10", "CUSTOMER#2 ORDER#a total:5", "CUSTOMER#2 ORDER#b total:5", "",
		"- USER#ben POST#p2", "- CUSTOMER#2 ORDER#b")
}

// numbersMoment has a copy rule that would need no references, were it not for the number key.
func numbersMoment(t *testing.T) moment {
	return after(t, numbersRules, "USER#1 1 name=One", "TAG#a 1 owner=1", "ROOM#01 1 seats:4", "ROOM#1 1 seats:5", "", "USER#1 1 name=Uno")
}

// longMoment has keys that the state table cannot hold whole, one of which nothing counts to any more.
func longMoment(t *testing.T) moment {
	long, gone := strings.Repeat("%é", 450), strings.Repeat("%é", 451)
	return after(t, docsRules, "OWNER#"+long+" name=Long", "OWNER#o1 name=Ann",
		"DOC#"+long+" kind=doc ownerId="+long+" code=c1", "DOC#d2 kind=doc ownerId="+gone+" code=c2", "DOC#d3 kind=doc ownerId=o1 size:1.5", "",
		"OWNER#"+long+" name=Longer", "- DOC#d2")
}
