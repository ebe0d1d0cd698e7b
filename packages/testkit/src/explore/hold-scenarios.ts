import {
  A,
  add,
  B,
  finish,
  type HoldOf,
  open,
  peek,
  penalize,
  refund,
  renew,
  reserve,
  reset,
  STRICTER,
  save,
  take,
  update,
} from './call.js'
import { askOf, type Scenario } from './scenario.js'

// Three tokens at once, one a millisecond. A hold that is opened at 10 ms ends at FIRST or SECOND.

const FIRST = 16_000
const SECOND = 20_000
const holds = askOf('holds', {})

/** The hold that was opened as number `nth` before the start. */
function of(nth: number, rest: number, bound = FIRST): HoldOf {
  return { nth, rest, bound }
}

export const HOLDS: readonly Scenario[] = [
  holds(
    'open | take | open, of a key without a ring',
    [take(A, 9_000)],
    [[open(A, 10_000, 2, FIRST)], [take(A)], [open(A, 10_000, 1, FIRST)]],
    {
      lines: 4,
    },
  ),
  holds('first open | take | peek', [], [[open(A, 10_000, 2, FIRST)], [take(A, 10_000, 2)], [peek(A)]], { lines: 2 }),
  holds('take | open | open', [open(A, 10_000, 1, FIRST)], [[take(A)], [open(A, 10_000, 1, FIRST)], [open(A, 10_000, 1, SECOND)]], {
    lines: 2,
  }),
  holds('add | take | peek', [open(A, 10_000, 2, FIRST)], [[add(A, 10_000, 2, of(0, 2))], [take(A)], [peek(A)]], { lines: 2 }),
  holds(
    'open, open, add, renew, close alone | add | take',
    [
      open(A, 10_000, 1, FIRST),
      open(A, 10_000, 2, FIRST),
      add(A, 10_000, 1, of(1, 2)),
      renew(A, 10_000, SECOND, of(1, 1)),
      finish(A, 10_000, 0, of(0, 1)),
    ],
    [[add(A, 10_000, 1, of(1, 1, SECOND))], [take(A)]],
    { lines: 2 },
  ),
  holds(
    'add | add | take, of two that hold all',
    [open(A, 10_000, 1, FIRST), open(A, 10_000, 2, FIRST)],
    [[add(A, 10_000, 1, of(0, 1))], [add(A, 10_000, 2, of(1, 2))], [take(A)]],
    { lines: 2 },
  ),
  holds(
    'add beyond | take | add beyond',
    [open(A, 10_000, 1, FIRST), open(A, 10_000, 1, FIRST)],
    [[add(A, 10_000, 2, of(0, 1))], [take(A)], [add(A, 10_000, 2, of(1, 1))]],
    { lines: 2 },
  ),
  holds(
    'renew | renew | peek, take',
    [open(A, 10_000, 1, FIRST), open(A, 10_000, 1, FIRST)],
    [[renew(A, 11_000, SECOND, of(0, 1))], [renew(A, 11_000, SECOND, of(1, 1))], [peek(A, 17_000), take(A, 17_000, 2)]],
    { lines: 2 },
  ),
  holds(
    'renew | close | take',
    [open(A, 10_000, 2, FIRST)],
    [[renew(A, 11_000, SECOND, of(0, 2))], [finish(A, 11_000, 0, of(0, 2))], [take(A, 11_000, 2)]],
    {
      lines: 2,
    },
  ),
  holds(
    'close | open | take',
    [open(A, 10_000, 3, FIRST)],
    [[finish(A, 10_000, 1, of(0, 3))], [open(A, 10_000, 2, SECOND)], [take(A, 10_000, 2)]],
    { lines: 2 },
  ),
  holds(
    'take after the end | add before it | open',
    [open(A, 10_000, 2, FIRST)],
    [[take(A, 17_000, 3)], [add(A, 15_000, 1, of(0, 2))], [open(A, 17_000, 1, SECOND)]],
    { lines: 2 },
  ),
  holds(
    'take after an end | add before it, of another that goes on',
    [open(A, 10_000, 1, FIRST), open(A, 10_000, 1, SECOND)],
    [[take(A, 17_000, 2)], [add(A, 15_000, 1, of(0, 1))], [peek(A, 15_000)]],
    { lines: 2 },
  ),
  holds(
    'open of another key, one ring | take | add',
    [open(A, 10_000, 1, FIRST)],
    [[open(B, 17_000, 2, SECOND)], [take(A, 17_000)], [add(A, 17_000, 1, of(0, 1))]],
    { lines: 2, homes: [0, 0.5], mayRefuse: true },
  ),
  holds(
    'open of another key, one ring | close | open',
    [open(A, 10_000, 2, FIRST), take(B, 9_000)],
    [[open(B, 11_000, 2, SECOND)], [finish(A, 11_000, 0, of(0, 2))], [open(A, 11_000, 2, SECOND)]],
    { lines: 2, homes: [0, 0.5], mayRefuse: true },
  ),
  holds('take-over | add | take', [open(A, 10_000, 1, FIRST)], [[take(B, 15_000)], [add(A, 15_000, 1, of(0, 1))], [take(A, 15_000)]], {
    mayRefuse: true,
  }),
  holds(
    'take-over after the end | open | take',
    [open(A, 10_000, 1, FIRST)],
    [[take(B, 17_000)], [open(A, 17_000, 3, SECOND)], [take(A, 17_000)]],
    {
      mayRefuse: true,
    },
  ),
  holds(
    'refund | open | take',
    [take(A, 10_000, 2), open(A, 10_000, 1, FIRST)],
    [[refund(A, 10_000)], [open(A, 10_000, 1, FIRST)], [take(A)]],
    {
      lines: 2,
    },
  ),
  holds('reset | add | take', [take(A), open(A, 10_000, 2, FIRST)], [[reset(A)], [add(A, 10_000, 2, of(0, 2))], [take(A)]], { lines: 2 }),
  holds(
    'penalize | add | reserve',
    [open(A, 10_000, 2, FIRST)],
    [[penalize(A, 10_000, 2)], [add(A, 10_000, 2, of(0, 2))], [reserve(A, 10_000)]],
    {
      lines: 2,
    },
  ),
  holds('stricter | add | take', [open(A, 10_000, 2, FIRST)], [[update(STRICTER)], [add(A, 10_000, 1, of(0, 2))], [take(A)]], { lines: 2 }),
  holds(
    'save | open | add',
    [take(A), open(A, 10_000, 1, FIRST)],
    [[save(A)], [open(A, 10_000, 1, SECOND)], [add(A, 10_000, 1, of(0, 1))]],
    {
      lines: 2,
    },
  ),
]
