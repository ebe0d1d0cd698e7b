// Generic cell rate algorithm: the value is the theoretical arrival time, in units since the time base (ITU-T I.371, annex A). A
// key's debt is how far that lies ahead of now; at that time the key owes nothing.

@inline export function debtOf(value: u64, nowUnits: i64): i64 {
  return <i64>value - nowUnits
}

@inline export function valueFor(debt: i64, nowUnits: i64): u64 {
  const arrival = nowUnits + debt
  return arrival > 0 ? <u64>arrival : 0
}
