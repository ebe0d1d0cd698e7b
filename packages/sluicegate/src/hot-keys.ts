/** A key of the top list: its true count lies between `count - overcount` and `count`. */
export interface HotKey {
  readonly key: string
  readonly count: number
  readonly overcount: number
}
