import { serveLoadProcess } from 'sluicegate-commands/load/load-process.js'
import { engineTarget } from './engine-target.js'

// One of the processes of `sluicegate load`.
serveLoadProcess(engineTarget)
