import { register } from 'node:module'

// For `node --import`: a process with providers, in which the API of OpenTelemetry is not installed for modules that import it.
const HOOKS = `export async function resolve(specifier, context, next) {
  if (specifier !== '@opentelemetry/api') return next(specifier, context)
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
}`
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
Object.assign(globalThis, { [Symbol.for('opentelemetry.js.api.1')]: { version: '1.9.0' } })
