/*
 * How an entry of the core's table changes hands: hit, claim, rescan, take-over, release, refusal and stopping for good.
 *
 * Two entries, two keys, a few takers. One step is one atomic operation on a shared word; what a taker does with its own
 * variables in between happens in the same step. A taker may be left standing between any two steps. At any moment
 * everybody may be left standing at once, for good ("frozen"); an auditor then takes each key once, alone.
 *
 * A FAULT_... defined at compile time plants one fault, which the checker has to find.
 */

/* Keys of the second and the third taker, 0: there is none. The first takes key 1, by a clock that is behind. */
#ifndef SECOND
#define SECOND 1
#endif
#ifndef THIRD
#define THIRD 0
#endif
/* 0: nobody is left standing for good, and there is no auditor. */
#ifndef AUDIT
#define AUDIT 1
#endif
/* What the second taker's clock reads: 0 or 1. */
#ifndef SECOND_NOW
#define SECOND_NOW 1
#endif
#ifndef BURST
#define BURST 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif

#define ENTRIES 2
/* Attempts in which a taker that is alone is done, whatever the others have left behind. */
#define ALONE 5
#define AUDITOR (AUDIT -> 1 : 255)
#define STRANGER 3

#include "words.pml"

byte identity[ENTRIES]
byte state[ENTRIES]
byte takeoverHigh
bool frozen

/* What was admitted of each key by clocks that read 0 and 1, and the debt of it that was forgotten and counted. */
byte admitted0[4]
byte admitted1[4]
byte forgotten[4]

inline admit(key, at) {
  if
  :: at == 0 -> admitted0[key]++
  :: else -> admitted1[key]++
  fi
  assert(admitted0[key] <= BURST + forgotten[key])
  assert(admitted1[key] <= BURST + forgotten[key])
  assert(admitted0[key] + admitted1[key] <= BURST + 1 + forgotten[key])
}

inline check() {
  assert(ONCE(1))
  assert(ONCE(2))
  assert(ONCE(STRANGER))
}

proctype taker(byte key; byte now) provided (!frozen || _pid == AUDITOR) {
  byte attempt, i, entry, seen, seenIdentity, kind, least, debt, mark
  /* The entry being given up, the mark in it, and where to go on afterwards. */
  byte given, givenMark, back
  bool before

  if
  :: _pid == AUDITOR -> frozen = true
  :: else
  fi

again:
  atomic {
    attempt++
    kind = NOTHING; least = 255; debt = 0; mark = 0; entry = 0; seen = 0; seenIdentity = 0; given = 0; givenMark = 0; i = 0
    if
    :: attempt > ATTEMPTS && _pid != AUDITOR -> goto done
    :: else -> assert(attempt <= ALONE)
    fi
  }

#include "hit.pml"
#include "choose.pml"
#include "claim.pml"
#include "give-up.pml"

done:
  atomic {
    attempt = 0; i = 0; entry = 0; seen = 0; seenIdentity = 0; kind = 0; least = 0; debt = 0; mark = 0; given = 0; givenMark = 0; back = 0
    before = false
    if
    :: _pid == AUDITOR && key == 1 -> key = 2; goto again
    :: else
    fi
  }
}

/* An entry that was never used, or a stranger's: as good as new, with debt that a take would pass, or denied. */
inline furnish(entry) {
  if
  :: true
  :: identity[entry] = IDENTITY(STRANGER, 1); state[entry] = STATE(1, 0)
  :: identity[entry] = IDENTITY(STRANGER, 1); state[entry] = STATE(1, 1)
  :: identity[entry] = IDENTITY(STRANGER, 1); state[entry] = STATE(1, 2)
  :: identity[entry] = IDENTITY(2, 1); state[entry] = STATE(1, 1); admitted0[2] = 1
  fi
}

init {
  atomic {
    furnish(0)
    if
    :: state[0] != 0 && KEY_OF(identity[0]) != STRANGER -> skip
    :: state[0] != 0 && KEY_OF(identity[0]) == STRANGER -> furnish(1)
    :: else
    fi
#if AUDIT
    run taker(1, 1)
#endif
    run taker(1, 0)
    run taker(SECOND, SECOND_NOW)
#if THIRD
    run taker(THIRD, 1)
#endif
  }
}
