import type { OutboundControls } from './outbound-stats.js'

/** What whoever limits can be asked, and told: as functions that stand alone. */
export function controlsOf(lines: OutboundControls): OutboundControls {
  return {
    stats: () => lines.stats(),
    statsOf: (key) => lines.statsOf(key),
    forget: (key) => lines.forget(key),
    close: () => lines.close(),
  }
}
