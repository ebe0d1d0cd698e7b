import { PolicyError } from '../errors.js'

/** Where the guard stands. */
export interface RateLimitPlace {
  /** Before every handler of the app, default true. Else only where `@UseGuards(RateLimitGuard)` says, such as behind a guard that finds the user. */
  readonly global?: boolean
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
export function isGlobal(place: RateLimitPlace): boolean {
  for (const [option, value] of Object.entries(place)) {
    if (option !== 'global')
      throw new PolicyError(
        'OPTION_UNKNOWN',
        option,
        value,
        'is not global, the only option beside what limits: others belong into one object, RateLimitModule.forRoot({ policy, key })',
      )
  }
  const { global = true } = place
  if (typeof global !== 'boolean') throw new PolicyError('OPTION_INVALID', 'global', global, 'must be true or false')
  return global
}
