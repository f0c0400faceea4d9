/** A mocha plug-in: with `CI` set, tests have three times as much time, because such machines are often shared and slow. */
import type { Context } from 'mocha'

const FACTOR = process.env.CI === undefined ? 1 : 3

export const mochaHooks = {
  beforeAll(this: Context): void {
    let root = this.test?.parent
    while (root?.parent) root = root.parent
    root?.eachTest(test => test.timeout(FACTOR * test.timeout()))
  }
}
