/* An entry is taken over: mark, rescan, identity, first state. */

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
    :: kind == LIVE ->
       assert(KEY_OF(identity[entry]) != key)
       forgotten[KEY_OF(identity[entry])] = forgotten[KEY_OF(identity[entry])] + DEBT(ARRIVAL_OF(seen), now)
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
