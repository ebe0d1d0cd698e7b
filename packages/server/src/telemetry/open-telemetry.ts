import type * as Api from '@opentelemetry/api'

/** `@opentelemetry/api`, where it is installed. */
export type OpenTelemetryApi = typeof Api

/** The package is optional: undefined without it. */
export async function openTelemetryApi(): Promise<OpenTelemetryApi | undefined> {
  try {
    return await import('@opentelemetry/api')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}
