import { writeSync } from 'node:fs'
import { MemoryTelemetry } from './memory-telemetry.js'

// For `node --import`, as programs register an SDK: each span is a line of JSON on the error output.
new MemoryTelemetry((span) => writeSync(2, `${JSON.stringify({ span })}\n`)).register()
