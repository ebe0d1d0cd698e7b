import { PolicyError } from '../errors.js'

/** What is thrown where a handle leads to no limiter. */
export function invalidHandle(handle: unknown): PolicyError {
  return new PolicyError('HANDLE_INVALID', 'handle', handle, 'must be what limiter.handle() gave, of this same version')
}
