import { randomSecret } from '../memory/fingerprint.js'
import { invalidHandle, isClockHandle } from '../memory/handle-check.js'
import { checkOptions } from '../options/option-checks.js'
import { type Clock, checkClock, clockFromHandle } from '../time/clock.js'
import { CountingGate } from './counting-gate.js'
import type { Gate, GateHandle, GateOptions, VerdictReader } from './gate.js'
import { gateSettings } from './gate-settings.js'
import { SharedVerdicts, type VerdictSetHandle } from './shared-verdicts.js'
import { isVerdictMemory, VerdictSet, WrittenVerdictSet } from './verdict-set.js'

/**
 * A gate of relaxed accuracy: a request is looked up, and counted after it was answered. A key whose count in the window is above a threshold
 * gets a verdict for a time. Memory is fixed, whatever keys come.
 *
 * @throws {PolicyError} on an unknown option or one out of range; `RUNTIME_UNSUPPORTED` without shared memory.
 * @example
 * const gate = createGate({ window: '10s', throttle: 200, block: { above: 1000, for: '10m' } })
 * if (gate.check('192.0.2.7') === 'block') deny()
 * gate.record('192.0.2.7')
 */
export function createGate(options: GateOptions): Gate {
  const settings = gateSettings(options)
  return new CountingGate(settings, new WrittenVerdictSet(settings.maxVerdicts, Math.floor(settings.clock.nowMs())), randomSecret())
}

/**
 * In a worker thread: looks into the verdicts of a gate that another thread counts for. A custom clock has to be passed again.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, `CLOCK_INVALID` when a custom clock is missing.
 * @example
 * const gate = attachGate(workerData.gate)
 * gate.check('192.0.2.7') // 'pass'
 */
export function attachGate(handle: GateHandle, options: { readonly clock?: Clock } = {}): VerdictReader {
  const own = checkOptions(options, ['clock'], '{ clock }', 'attachGate()')
  if (!isVerdictHandle(handle)) throw invalidHandle(handle)
  const clock = own.clock ?? clockFromHandle(handle.clock)
  checkClock(clock)
  return new SharedVerdicts(new VerdictSet(handle.verdicts, handle.baseMs), handle.secret, clock)
}

function isVerdictHandle(handle: GateHandle): handle is VerdictSetHandle {
  const { sluicegate, verdicts, baseMs, secret, clock } = Object(handle) as Partial<VerdictSetHandle>
  const isSecret = Array.isArray(secret) && secret.length === 2 && secret.every(Number.isInteger)
  return sluicegate === 1 && isVerdictMemory(verdicts) && Number.isFinite(baseMs) && isSecret && isClockHandle(clock)
}
