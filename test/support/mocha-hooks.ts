/**
 * A mocha plug-in: with `CI` set, tests have three times as much time, because such machines are often shared and slow. A
 * failing property reports its error, because mocha's parallel mode loses an error's cause.
 */
import fc from 'fast-check'
import type { Context } from 'mocha'

fc.configureGlobal({ includeErrorInReport: true })

const FACTOR = process.env.CI === undefined ? 1 : 3

export const mochaHooks = {
  beforeAll(this: Context): void {
    let root = this.test?.parent
    while (root?.parent) root = root.parent
    root?.eachTest(test => test.timeout(FACTOR * test.timeout()))
  }
}
