/*
 * How an entry of the core's table changes hands: hit, claim, rescan, take-over, release, refusal and stopping for good.
 *
 * Two entries, two keys, a few takers. One step is one atomic operation on a shared word; what a taker does with its own
 * variables in between happens in the same step. A taker may be left standing between any two steps. At any moment
 * everybody may be left standing at once, for good ("frozen"); an auditor then takes each key once, alone.
 *
 * Words are bytes:
 *   identity   key * 16 + generation of 4 bits                  key 0: nobody
 *   state      64 + owner of 3 bits * 8 + arrival time of 3     a token comes back in one unit of time
 *   mark       128 + key * 16 + generation of 4 bits
 *   0          never used
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

#define IDENTITY(key, generation) ((key) * 16 + ((generation) & 15))
#define KEY_OF(identity) ((identity) / 16)
#define GENERATION_OF(word) ((word) & 15)

#define STATE(generation, arrival) (64 + ((generation) & 7) * 8 + (arrival))
#define WITH_ARRIVAL(word, arrival) (((word) & 120) + (arrival))
#define ARRIVAL_OF(word) ((word) & 7)
#define IS_STATE(word) ((word) >= 64 && (word) < 128)
#define RELEASED(generation) STATE(generation, 0)

#define MARK(key, generation) (128 + (key) * 16 + ((generation) & 15))
#define IS_MARK(word) ((word) >= 128)
#define MARK_KEY(word) (((word) - 128) / 16)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define DEBT(arrival, at) ((arrival) > (at) -> (arrival) - (at) : 0)

#define LIVES(key, entry) (IS_STATE(state[entry]) && KEY_OF(identity[entry]) == (key))
#define ONCE(key) (!(LIVES(key, 0) && LIVES(key, 1)))

#define NOTHING 0
#define FREE 1
#define IDLE 2
#define MARKED 3
#define LIVE 4
#define RIVAL 5

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

find:
#ifdef FAULT_IDENTITY_FIRST
  seenIdentity = identity[i]
  seen = state[i]
#else
  atomic {
    seen = state[i]
    if
    :: seen == 0 -> i = 0; goto moveIn
    :: IS_MARK(seen) -> goto findNext
    :: else
    fi
  }
  seenIdentity = identity[i]
#endif
  atomic {
    if
    :: seen == 0 -> i = 0; goto moveIn
    :: !IS_MARK(seen) && KEY_OF(seenIdentity) == key -> goto hit
    :: else
    fi
findNext:
    i++
    if
    :: i == ENTRIES -> i = 0; goto moveIn
    :: else -> goto find
    fi
  }

hit:
  atomic {
    if
    :: DEBT(ARRIVAL_OF(seen), now) + 1 > BURST -> goto done
    :: else
    fi
#ifndef FAULT_PLAIN_STORE
    if
    :: state[i] != seen -> goto again
    :: else
    fi
#endif
    /* Nobody else is charged. */
    assert(KEY_OF(identity[i]) == key)
    state[i] = WITH_ARRIVAL(seen, MAX(ARRIVAL_OF(seen), now) + 1)
    admit(key, now)
    goto done
  }

moveIn:
  /* A newcomer counts from the latest time by which any key was forgotten. */
  atomic {
#ifndef FAULT_NO_TAKEOVER_TIME
    debt = DEBT(takeoverHigh, now)
#endif
    if
    :: debt + 1 > BURST -> goto done
    :: else -> debt = 0; least = 255
    fi
  }

choose:
  atomic {
    seen = state[i]
    if
    :: seen == 0 -> kind = FREE; entry = i; goto chosen
    :: IS_MARK(seen) && MARK_KEY(seen) == key -> kind = RIVAL; entry = i; goto chosen
    :: IS_MARK(seen) && MARK_KEY(seen) != key ->
       if
       :: kind != MARKED -> kind = MARKED; entry = i; mark = seen
       :: else
       fi
       goto chooseNext
    :: else
    fi
  }
  atomic {
    seenIdentity = identity[i]
    debt = DEBT(ARRIVAL_OF(seen), now)
    if
    :: debt == 0 && KEY_OF(seenIdentity) == 0 -> kind = FREE; entry = i; goto chosen
    :: debt == 0 && KEY_OF(seenIdentity) != 0 -> kind = IDLE; entry = i; goto chosen
    :: else
    fi
    /* `mark` keeps the word of the best so far until the scan is over. */
    if
    :: kind != MARKED && debt < least && debt + 1 <= BURST -> least = debt; kind = LIVE; entry = i; mark = seen
    :: else
    fi
chooseNext:
    i++
    if
    :: i < ENTRIES -> goto choose
    :: else -> seen = mark
    fi
  }

chosen:
  atomic {
    seenIdentity = 0; least = 0; debt = 0; i = 0; mark = 0
    if
    :: kind == NOTHING -> goto done
    :: kind == RIVAL -> given = entry; givenMark = seen; back = 0; goto expel
    :: kind == FREE || kind == MARKED -> goto claim
    :: else
    fi
  }
#ifndef FAULT_NO_TAKEOVER_TIME
  takeoverHigh = MAX(takeoverHigh, now)
#endif
claim:
  seenIdentity = identity[entry]
  atomic {
    if
    :: state[entry] != seen -> goto again
    :: else
    fi
    if
    :: IS_MARK(seen) -> mark = MARK(key, seen + 1)
    :: else -> mark = MARK(key, seenIdentity)
    fi
    if
    :: kind == LIVE -> forgotten[KEY_OF(identity[entry])] = forgotten[KEY_OF(identity[entry])] + DEBT(ARRIVAL_OF(seen), now)
    :: else
    fi
    state[entry] = mark
    seen = 0; seenIdentity = 0; i = 0; before = true; kind = NOTHING
#ifdef FAULT_NO_RESCAN
    goto name
#endif
  }

rescan:
  atomic {
    if
    :: i == ENTRIES -> i = 0; goto name
    :: i == entry -> before = false; i++; goto rescan
    :: else
    fi
    seen = state[i]
    if
    :: seen == 0 -> seen = 0; i = 0; goto name
    :: IS_MARK(seen) && MARK_KEY(seen) == key ->
#ifdef FAULT_RIVALS_BOTH_GO_ON
       seen = 0; i++; goto rescan
#endif
       if
       :: before -> given = entry; givenMark = mark; back = 0; goto giveUp
       :: else -> given = i; givenMark = seen; back = 1; goto expel
       fi
    :: IS_MARK(seen) && MARK_KEY(seen) != key -> seen = 0; i++; goto rescan
    :: else
    fi
  }
  atomic {
    if
    :: KEY_OF(identity[i]) == key -> given = entry; givenMark = mark; back = 0; goto giveUp
    :: else -> seen = 0; i++; goto rescan
    fi
  }

name:
  seenIdentity = identity[entry]
  if
  :: state[entry] != mark -> goto again
  :: else
  fi
  atomic {
    if
#ifdef FAULT_PLAIN_IDENTITY
    :: true ->
#else
    :: identity[entry] != seenIdentity -> goto name
    :: else ->
#endif
#ifdef FAULT_NO_GENERATION
       identity[entry] = IDENTITY(key, GENERATION_OF(seenIdentity))
#else
       identity[entry] = IDENTITY(key, mark + 1)
#endif
       check()
    fi
    seenIdentity = 0; seen = 0
  }

  /* Read again after the rescan: whoever forgot the key until then has published the time. */
  atomic {
    debt = now
#ifndef FAULT_NO_TAKEOVER_TIME
    debt = MAX(takeoverHigh, now)
#endif
    if
    :: debt - now + 1 > BURST -> given = entry; givenMark = mark; back = 2; goto giveUp
    :: else
    fi
  }
  atomic {
    if
    :: state[entry] != mark -> goto again
    :: else
    fi
    assert(KEY_OF(identity[entry]) == key)
#ifdef FAULT_FIRST_TAKE_FREE
    state[entry] = STATE(mark + 1, debt)
#else
    state[entry] = STATE(mark + 1, debt + 1)
#endif
    check()
    admit(key, now)
    goto done
  }

  /* Takes entry `given` away from the holder of `givenMark`, and gives it up. back 1: go on with the rescan when it worked. */
expel:
#ifdef FAULT_MARK_WIPED
  atomic {
    if
    :: state[given] == givenMark -> state[given] = RELEASED(givenMark + 1); check(); goto gaveUp
    :: state[given] != givenMark && back == 1 -> given = entry; givenMark = mark; back = 0; goto giveUp
    :: else -> goto again
    fi
  }
#else
  atomic {
    if
    :: state[given] == givenMark -> givenMark = MARK(0, givenMark + 1); state[given] = givenMark
    :: state[given] != givenMark && back == 1 -> given = entry; givenMark = mark; back = 0; goto giveUp
    :: else -> goto again
    fi
  }
#endif

  /* Gives up entry `given`, in which `givenMark` is this taker's own: identity first. */
giveUp:
#ifdef FAULT_IDENTITY_LEFT
  goto wipe
#endif
  seenIdentity = identity[given]
  if
  :: state[given] != givenMark -> goto gaveUp
  :: else
  fi
  atomic {
    if
    :: identity[given] != seenIdentity -> goto giveUp
    :: else -> identity[given] = IDENTITY(0, givenMark + 1); check()
    fi
  }
wipe:
  atomic {
    if
    :: state[given] == givenMark -> state[given] = RELEASED(givenMark + 1); check()
    :: else
    fi
  }
gaveUp:
  atomic {
    given = 0; givenMark = 0; seenIdentity = 0; seen = 0
    if
    :: back == 1 -> back = 0; i++; goto rescan
    :: back == 2 -> goto done
    :: else -> back = 0; goto again
    fi
  }

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
