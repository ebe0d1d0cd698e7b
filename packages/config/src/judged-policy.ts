import { type Policy, PolicyError } from 'sluicegate'
import { type AlgorithmName, CALENDAR_UNITS, OFFERS, type RuleOption } from './algorithms.js'
import { didYouMean } from './spelling.js'

/** Options as written in the file; undefined where one is left out or has a fault already. */
export type WrittenRule = { readonly [Option in RuleOption | 'name']?: unknown }

/** Records a fault of the rule's name. */
export type NameFault = (reason: string) => void

/** Values for required options that are missing; all others have defaults. */
const STAND_INS: Readonly<Record<string, unknown>> = { limit: 1, window: '1s', name: 'x' }
/** The calendar window with which a time zone is checked by itself. */
const CALENDAR_STAND_INS: typeof STAND_INS = { ...STAND_INS, window: 'day' }
const WITH_UNIT = /^\d[\d.]*(ms|s|m|h|d)$/

/** Where faults of options are recorded: a section, or a file with other names for them. */
export interface OptionFaults {
  fault(option: string, reason: string): void
}

/**
 * The policy that the library makes of `written`. After each refusal the library is called again without the refused option, so that every
 * refusal becomes a fault of `section`. Undefined when there was a refusal, or when `limit` or `window` is left out.
 */
export function judgedPolicy(
  section: OptionFaults,
  algorithm: AlgorithmName,
  written: WrittenRule,
  nameFault: NameFault,
): Policy | undefined {
  const standIns = algorithm === 'fixed-window' ? CALENDAR_STAND_INS : STAND_INS
  const refused = new Set<string>()
  const trial: Record<string, unknown> = {}
  for (const [option, value] of Object.entries(written)) if (value !== undefined) trial[inCamelCase(option)] = value
  if (OFFERS[algorithm].options.includes('window')) {
    const misspelt = windowReason(written.window, algorithm)
    if (misspelt !== undefined) section.fault('window', misspelt)
    if (misspelt !== undefined || trial.window === undefined) refuse('window')
  }
  if (trial.limit === undefined) refuse('limit')
  for (;;) {
    try {
      const policy = OFFERS[algorithm].make(trial as never)
      return refused.size === 0 ? policy : undefined
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      const { option } = error
      // A conflict of several options is reported only when each of them is as the user wrote it.
      const isClash = error.code === 'RANGE_UNSUPPORTED'
      if (isClash && refused.size > 0) return undefined
      if (option === 'name') nameFault(reasonWithoutOption(error))
      else section.fault(inKebabCase(option), reasonOf(error))
      if (isClash || refused.has(option)) return undefined
      refuse(option)
    }
  }

  function refuse(option: string): void {
    refused.add(option)
    if (option in standIns) trial[option] = standIns[option]
    else delete trial[option]
  }
}

/** Why the library refused an option, with a suggestion where the choices are too many to list. */
function reasonOf(error: PolicyError): string {
  const reason = reasonWithoutOption(error)
  if (error.option !== 'timeZone' || typeof error.value !== 'string') return reason
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  // A zone may also be valid by itself, with an invalid window.
  return zones.includes(error.value) ? reason : reason + didYouMean(error.value, zones)
}

/** Why the form of a window is invalid; undefined when it is valid. The library's own message would suggest numbers without a unit as well. */
function windowReason(window: unknown, algorithm: AlgorithmName): string | undefined {
  if (typeof window !== 'string' || WITH_UNIT.test(window)) return undefined
  const isUnit = CALENDAR_UNITS.includes(window)
  if (isUnit && algorithm === 'fixed-window') return undefined
  if (isUnit) return `windows of the calendar such as ${window} are for fixed-window; give a length such as 24h or 30d`
  const form = 'must be a number with a unit: 250ms, 10s, 1m, 24h or 30d'
  const shown = JSON.stringify(window.length > 60 ? `${window.slice(0, 60)}...` : window)
  if (algorithm !== 'fixed-window') return `${form}, not ${shown}`
  return `${form}; or day, week, month or year, not ${shown}${didYouMean(window, CALENDAR_UNITS)}`
}

/** The library's messages begin with the option, which the fault's path already names. */
export function reasonWithoutOption({ option, message }: PolicyError): string {
  return message.startsWith(`${option}: `) ? message.slice(option.length + 2) : message
}

function inCamelCase(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function inKebabCase(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
