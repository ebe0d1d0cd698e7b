/** One run of a closed loop against one server. */
export interface ServerRun {
  readonly perSecond: number
  /** Processor time of the server for one request, in microseconds. */
  readonly cpuUs: number
}
