/** Many callers on few signals: one listener per signal while it has callers. The latest caller is called first. */
export class AbortWatch {
  private readonly watched = new Map<AbortSignal, Watched>()

  /** Calls `fn` when the signal aborts, unless the returned function was called before. */
  add(signal: AbortSignal, fn: () => void): () => void {
    const watched = this.watched.get(signal) ?? this.watch(signal)
    watched.fns.add(fn)
    return () => {
      if (watched.fns.delete(fn) && watched.fns.size === 0) this.leave(signal, watched)
    }
  }

  private watch(signal: AbortSignal): Watched {
    const fns = new Set<() => void>()
    const watched: Watched = {
      fns,
      listener: () => {
        this.leave(signal, watched)
        for (const fn of [...fns].reverse()) fn()
      },
    }
    signal.addEventListener('abort', watched.listener)
    this.watched.set(signal, watched)
    return watched
  }

  private leave(signal: AbortSignal, { listener }: Watched): void {
    signal.removeEventListener('abort', listener)
    this.watched.delete(signal)
  }
}

interface Watched {
  readonly fns: Set<() => void>
  readonly listener: () => void
}
