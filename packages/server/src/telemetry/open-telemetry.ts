import type * as Api from '@opentelemetry/api'

/** `@opentelemetry/api`, where it is installed. */
export type OpenTelemetryApi = typeof Api

/** Under it every copy of the API keeps what was registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Undefined where nothing was registered, as in most programs: its hundred modules are not loaded then; and without the package, which is optional. */
export async function openTelemetryApi(): Promise<OpenTelemetryApi | undefined> {
  if (!(REGISTERED in globalThis)) return undefined
  try {
    return await import('@opentelemetry/api')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}
