/* A mark is taken away from its holder; an entry is given up. */

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
