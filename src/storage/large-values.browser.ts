/** In a browser, the database keeps large values, too. `#large-values` in `package.json`. */
type Records = readonly (readonly [string, Uint8Array])[]

export class LargeValues {
  readonly keys: readonly string[] = []

  static async open(_directory: string, _database: object): Promise<LargeValues> {
    return new LargeValues()
  }

  async get(_key: string): Promise<Uint8Array | undefined> {
    return undefined
  }

  async prepare(records: Records, dropped: readonly string[]) {
    return { records, dropped, written: async () => undefined }
  }
}
