package expr

// tables are expressions over the item "everything", with what they give.
var tables = []struct{ name, rows string }{
	{"literals", `
true => true
false => false
null => missing
0 => 0
007 => 7
12.50 => 12.5
1.5e3 => 1500
1E-2 => 0.01
-5 => -5
- -5 => 5
12345678901234567890123456789012345678 => 12345678901234567890123456789012345678
0.00000000000000000000000000000000000001 => 0.00000000000000000000000000000000000001
1000000000000000000000000000000000000000000 => 1000000000000000000000000000000000000000000
'single "quotes"' => "single \"quotes\""
"double 'quotes'" => "double 'quotes'"
"\n\t\r\\\'\"" => "\n\t\r\\'\""
"\u00e9\u20AC" => "é€"
"\uD83D\uDE00" => "😀"
'' => ""
[] => []
[1, "two", [3], null,] => [1, "two", [3], missing]
[n, absent, s[0:1]] => [5, missing, "h"]
`},
	{"attributes", `
n => 5
absent => missing
nothing => missing
item["user-name"] => "bob"
item['n'] => 5
item["item"] => "spade"
count => 7
type => "kind"
size => 8
size + 1 => 9
size(s) + size => 13
has => 9
has(has) => true
contains => 10
and => true
and && yes => true
trueish => missing
inn => missing
`},
	{"paths", `
m.x => 1.0
m["x"] => 1.0
m["user-name"] => "ann"
m.in.deep => "d"
m["in"]["deep"] => "d"
m[s[0:0] + "x"] => 1.0
m.y => missing
m.y.z => missing
m.gone => missing
m.gone.x => missing
absent.x.y => missing
absent[0] => missing
l[0] => 1
l[1] => "two"
l[2] => missing
l[3][0] => 4
l[4] => missing
l[1000000000000000000000] => missing
l[n - 4] => "two"
l[absent] => missing
l[1.0] => "two"
[1, 2][1] => 2
(m).x => 1.0
s.x => error value.type
s[0] => error value.type
n[0] => error value.type
ss[0] => error value.type
l.x => error value.type
m[0] => error value.type
l[-n] => error value.type
l[third] => error value.type
l[s] => error value.type
`},
	{"slices", `
s[1:3] => "el"
s[:2] => "he"
s[2:] => "llo"
s[:] => "hello"
s[3:99] => "lo"
s[99:] => ""
s[3:1] => ""
greek[1:3] => "βγ"
smile[1:2] => "😀"
smile[2:] => "b"
"literal"[0:3] => "lit"
s[1:][1:] => "llo"
s[n - 5:n - 3] => "he"
l[1:2] => ["two"]
l[1:99] => ["two", missing, [4]]
l[9:] => []
l[3:1] => []
[1, 2, 3][1:] => [2, 3]
absent[1:2] => missing
s[absent:2] => missing
s[1:nothing] => missing
s[1:100000000000000000000000000] => "ello"
n[0:1] => error value.type
ss[0:1] => error value.type
m[0:1] => error value.type
bytes[0:1] => error value.type
s[third:] => error value.type
s[:-n] => error value.type
`},
	{"arithmetic", `
0.1 + 0.2 => 0.3
0.1 + 0.2 == third => true
0.1 + 0.2 == 0.3 => true
n + 1 - 2 => 4
1 - 2 - 3 => -4
2 + 3 * 4 => 14
(2 + 3) * 4 => 20
12 / 4 / 3 => 1
12 / 4 * 3 => 9
n * -1 => -5
-n => -5
-n * -n => 25
-(n + 1) => -6
--n => 5
1 / 8 => 0.125
10 / 4 => 2.5
1 / 3 => error number.overflow
2 / 3 * 3 => error number.overflow
n / zero => error number.division
zero / zero => error number.division
1 / 0 => error number.division
big + 1 => 100000000000000000000000000000000000000
big + 2 => error number.overflow
big * big => error number.overflow
-big - 2 => error number.overflow
huge * 10 => error number.overflow
huge + 1 => error number.overflow
big - big => 0
-zero => 0
m.x + 1 => 2
five + 1 => error value.type
1 + five => error value.type
n - s => error value.type
s - s => error value.type
s * 2 => error value.type
yes + yes => error value.type
l + l => error value.type
-s => error value.type
bad + 1 => error value.type
-bad => error value.type
`},
	{"concatenation", `
s + "!" => "hello!"
"a" + 'b' + s => "abhello"
empty + empty => ""
s + empty => "hello"
(s + "-") + (s + "-") => "hello-hello-"
"x" + five => "x5"
s + n => error value.type
s + s + n => error value.type
n + 1 + s => error value.type
s + absent => missing
absent + s + s => missing
s + s + absent + n => missing
bytes + bytes => error value.type
`},
	{"comparison", `
n == 5 => true
n == 5.00 => true
m.x == 1 => true
n != 5 => false
n == 6 => false
n != 6 => true
n < 6 => true
n < 5 => false
n <= 5 => true
n > 4 => true
n > 5 => false
n >= 5 => true
n >= 6 => false
10 > 9 => true
-1 < 0 => true
s == "hello" => true
s != "hello" => false
s < "help" => true
"Z" < "a" => true
"10" < "9" => true
"" < "a" => true
"z" < "é" => true
yes == true => true
no == false => true
yes != no => true
bytes == bytes => true
bytes <= bytes => true
bytes < bytes => false
n == five => false
n != five => true
five == "5" => true
five == 5 => false
1 == "1" => false
true != 1 => true
yes == "true" => false
n < five => error value.type
five > n => error value.type
s < 1 => error value.type
yes < no => error value.type
l < l => error value.type
m <= m => error value.type
bytes < s => error value.type
bad < 1 => error value.type
bad == bad => true
bad == 1 => false
l == l => true
m == m => true
l == m => false
l[3] == [4.0] => true
l == [1, "two", null, [4]] => true
l == [1, "two", null, [5]] => false
l == [1] => false
[1] == [1.0] => true
[] == [] => true
[null] == [absent] => true
m.in == m => false
ss == ss2 => true
ns == ns2 => true
ss == ns => false
ss != ss2 => false
ss == ["a", "b"] => false
bs == bs => true
`},
	{"missing in comparisons", `
absent == 1 => false
absent != 1 => true
1 == absent => false
1 != absent => true
nothing == "" => false
nothing != "" => true
absent < 1 => false
absent <= 1 => false
absent > 1 => false
absent >= 1 => false
1 < absent => false
1 >= nothing => false
absent == absent => false
absent != absent => true
absent == nothing => false
nothing != nothing => true
absent < absent => false
absent >= absent => false
absent == null => true
absent != null => false
nothing == null => true
null == nothing => true
null != nothing => false
n == null => false
n != null => true
null != n => true
null == null => true
null != null => false
(null) == absent => true
m.gone == null => true
m.x != null => true
l[9] == null => true
absent + 1 == null => true
size(absent) == null => true
absent != "banned" => true
`},
	{"missing elsewhere", `
absent + 1 => missing
1 + nothing => missing
absent * absent => missing
1 / absent => missing
absent / 0 => missing
-absent => missing
absent - s => missing
!absent => true
!nothing => true
absent && true => false
true && absent => false
absent || true => true
absent || false => false
size(absent) => missing
size(nothing) => missing
size(absent) > 0 => false
absent in [1] => false
absent in [null] => false
1 in absent => false
1 in nothing => false
nothing in absent => false
absent.startsWith("a") => false
s.startsWith(absent) => false
absent.contains(nothing) => false
absent.endsWith(1 + "") => refused expr.type
absent + 1 / 0 => error number.division
`},
	{"logic", `
true && true => true
true && false => false
false || true => true
false || false => false
!true => false
!!yes => true
!no => true
!(n > 3) => false
true || false && false => true
(true || false) && false => false
!no && no => false
yes && yes && no => false
no || no || yes => true
no && n / zero > 1 => false
yes || n / zero > 1 => true
yes && n / zero > 1 => error number.division
no || n / zero > 1 => error number.division
no && s => false
yes && s => error value.type
s && yes => error value.type
n || yes => error value.type
!n => error value.type
!l => error value.type
yes == (n == 5) => true
1 + 1 == 2 && 3 > 2 => true
`},
	{"in", `
n in [1, 5] => true
n in [1, 2] => false
n in [5.0] => true
5 in [n] => true
five in [5] => false
s in ["hello", "bye"] => true
s in [] => false
[4] in l => true
[5] in l => false
"two" in l => true
1.0 in l => true
"a" in ss => true
"c" in ss => false
1 in ss => false
2.5 in ns => true
2.51 in ns => false
"1" in ns => false
"x" in m => true
"user-name" in m => true
"gone" in m => false
"nope" in m => false
1 in m => false
yes in [true] => true
bytes in bs => false
!(n in [1]) => true
n + 1 in [6] => true
n in s => error value.type
n in n => error value.type
"h" in s => error value.type
`},
	{"functions", `
has(n) => true
has(absent) => false
has(nothing) => false
has(m.x) => true
has(m.y) => false
has(m.y.z) => false
has(m.gone) => false
has(m["user-name"]) => true
has(item["user-name"]) => true
has(l[0]) => true
has(l[2]) => false
has(l[9]) => false
has(l[n]) => false
has(s.x) => false
has(s[0]) => false
has(l[third]) => false
has(l["x"]) => false
has(m[0]) => false
has(m[s]) => false
has(l[1 / 0]) => error number.division
has(empty) => true
has(zero) => true
size(s) => 5
size(empty) => 0
size(greek) => 4
size(smile) => 3
size(bytes) => 3
size(l) => 4
size(m) => 4
size(ss) => 2
size(ns) => 2
size([]) => 0
size(s + s) => 10
size(n) => error value.type
size(yes) => error value.type
s.startsWith("he") => true
s.startsWith("") => true
s.startsWith("lo") => false
s.endsWith("lo") => true
s.endsWith("he") => false
s.contains("ell") => true
s.contains("elo") => false
"abc".contains(s[0:0]) => true
m.in.deep.startsWith("d") => true
(s + "x").endsWith("ox") => true
s.startsWith(s[:1]) => true
n.startsWith("5") => error value.type
s.startsWith(n) => error value.type
ss.contains("a") => error value.type
l.contains(1 + "") => refused expr.type
`},
}
