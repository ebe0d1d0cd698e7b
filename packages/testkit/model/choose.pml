/* The key lives nowhere: where could it? */

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
#ifndef FAULT_FORGETS_ITSELF
    /* The very key has moved in since it was missed. */
    if
    :: KEY_OF(seenIdentity) == key -> goto again
    :: else
    fi
#endif
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
