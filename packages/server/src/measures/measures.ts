import type { Engine } from '../engine/engine.js'
import { decisionMeasures, descriptorMeasures, heldMeasures, storeMeasures, tableMeasures, throttleMeasures } from './engine-measures.js'
import { gauge, type Measure } from './measure.js'
import {
  candidateMeasures,
  configMeasures,
  connectionMeasures,
  logMeasures,
  type MoreFigures,
  quotaMeasures,
  type Traffic,
  webhookMeasures,
} from './service-measures.js'

/**
 * All measures of the service, read only when a system asks: a decision costs plain additions, never a label. Keys are unbounded text from
 * clients and never appear.
 */
export function measuresOf(engine: Engine, traffic: Traffic, version: string, more: MoreFigures = {}): readonly Measure[] {
  return [
    gauge('sluicegate_build_info', 'The version that runs; always 1.', () => [{ labels: { version }, value: 1 }]),
    ...decisionMeasures(engine),
    ...descriptorMeasures(more.hits),
    ...tableMeasures(engine),
    ...throttleMeasures(engine.callRates),
    ...candidateMeasures(engine, more.candidate),
    ...storeMeasures(engine),
    ...heldMeasures(engine),
    ...quotaMeasures(more.quotas),
    ...configMeasures(engine, more),
    ...webhookMeasures(more.webhook),
    ...logMeasures(),
    ...connectionMeasures(traffic, more),
  ]
}
