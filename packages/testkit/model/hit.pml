/* The key is looked for; if it lives somewhere, it is charged there. */

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
    :: DEBT(ARRIVAL_OF(seen), now) + 1 > BURST -> goto deny
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

  /* Nothing to swap: but did state and identity belong together? */
deny:
  atomic {
#ifndef FAULT_NO_SECOND_LOOK
    if
    :: state[i] != seen -> goto again
    :: else
    fi
#endif
#ifndef FAULT_NO_GENERATION
    /* What was read is one owner's. */
    assert((seen & 56) / 8 == (seenIdentity & 7))
#endif
    goto done
  }
