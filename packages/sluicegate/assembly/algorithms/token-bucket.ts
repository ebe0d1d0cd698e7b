// Token bucket, packed: ticks of 1,024 microseconds since the time base in 32 bits | tokens in 24, in fixed point of one unit.
//
// The level is written as it was at the tick *before* now. The refill since then is exactly the number of units by which it was
// reduced, so no part of a microsecond is lost or gained, however often the bucket is polled. A level below zero is written as
// zero at the later tick where it will have filled up that far. Exact while capacity + 1024 units a microsecond stay below 2^24,
// and decides as the arrival time does.

const LEVEL_BITS: u64 = 24
const LEVEL_MASK: u64 = (1 << 24) - 1
const TICK_BITS: i64 = 10
const TICK_US: i64 = 1 << 10

@inline export function debtOf(value: u64, nowUs: i64, unitsPerUs: i64, capacity: i64): i64 {
  const tickUs = <i64>(value >> LEVEL_BITS) << TICK_BITS
  const level = <i64>(value & LEVEL_MASK) + (nowUs - tickUs) * unitsPerUs
  return capacity - level
}

@inline export function valueFor(debt: i64, nowUs: i64, unitsPerUs: i64, capacity: i64): u64 {
  let tick = nowUs >> TICK_BITS
  let level = capacity - debt - (nowUs & (TICK_US - 1)) * unitsPerUs
  if (level < 0) {
    const unitsPerTick = unitsPerUs << TICK_BITS
    const ahead = (unitsPerTick - 1 - level) / unitsPerTick
    tick += ahead
    level += ahead * unitsPerTick
  }
  return (<u64>tick << LEVEL_BITS) | <u64>level
}
