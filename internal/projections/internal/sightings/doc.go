// Package sightings tells what an engine has seen of its table: how many items and records are of
// which entity, and which targets do not exist although sources point at them. It says so of rules
// that do not suit their table; nothing that is derived depends on it.
package sightings
