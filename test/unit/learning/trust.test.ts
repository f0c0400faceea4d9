/** The option `trust`: its text form, its bounds, and the same keys in the simulator. */
import assert from 'node:assert/strict'
import { parseScenario } from '../../../sim/index.js'
import { boundsOf, parseTrust, type Trust } from '../../../src/learning/index.js'

describe('trust', () => {
  for (const [text, bounds] of [
    ['members', undefined],
    ['bounded', {}],
    ['bounded,rate=2.5', { rate: 2.5 }],
    ['bounded,signers=3,rate=200', { signers: 3, rate: 200 }]
  ] as const)
    it(`of ${text} is read`, () => {
      assert.deepEqual(boundsOf(parseTrust(text)), bounds)
      const { trust } = parseScenario({ trust: text, signed: true }, 'test')
      assert.deepEqual(trust, { bounded: bounds !== undefined, signers: 0, ...bounds })
    })

  it('is in members by default', () => {
    assert.equal(boundsOf(undefined), undefined)
    assert.deepEqual(parseScenario({}, 'test').trust, { bounded: false, signers: 0 })
  })

  for (const text of [
    '',
    'all',
    'members,rate=2',
    'bounded,',
    'bounded,rate',
    'bounded,rate=',
    'bounded,rate=1,rate=2'
  ])
    it(`of '${text}' is refused`, () => {
      assert.throws(() => parseTrust(text), { code: 'ERR_OPTION', message: /expected members, or bounded/ })
      assert.throws(() => parseScenario({ trust: text }, 'test'), {
        message: /test: trust: .*expected members, or bounded/
      })
    })

  for (const [trust, reason] of [
    [{ rate: 0 }, /rate must be a number above 0, not 0/],
    [{ rate: Number.NaN }, /rate must be a number above 0, not NaN/],
    [{ signers: 1.5 }, /signers must be an integer from 0 to 64, not 1\.5/],
    [{ signers: 65 }, /from 0 to 64, not 65/],
    [{ signer: 2 }, /unknown key signer/]
  ] as const)
    it(`of ${JSON.stringify(trust)} is refused`, () =>
      assert.throws(() => boundsOf(trust as Trust), { message: reason }))

  it('needs signatures for signers', () =>
    assert.throws(() => parseScenario({ trust: 'bounded,signers=2' }, 'test'), /set signed=true/))
})
