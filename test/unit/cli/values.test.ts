/** Option values that consist of several settings. */
import assert from 'node:assert/strict'
import * as to from '../../../src/cli/options/values.js'
import { rules } from '../../../src/learning/index.js'

describe('values of options', () => {
  it('of --http: an address and pairs, which a repeated option adds to', () => {
    const first = to.http('[::1]:7280,cert=a.pem,origin=https://a.example|https://b.example')
    assert.deepEqual(first, {
      address: '[::1]:7280',
      cert: 'a.pem',
      origin: ['https://a.example', 'https://b.example']
    })
    assert.deepEqual(to.http('key=a.key,predict=50', first), { ...first, key: 'a.key', rate: { predict: 50 } })
    assert.equal(to.http('0', first).address, '0')
    assert.throws(() => to.http('7280,key=a.key'), /give cert=FILE as well/)
    assert.throws(() => to.http('7280,rate=5,predict=50'), /Give rate of all, or of roles/)
    assert.throws(() => to.http('7280,colour=red'), /Its keys are cert, key, origin, body, rate/)
  })

  it('of --schedule: only a peer admits workers by a token', () => {
    assert.deepEqual(to.peerSchedule('l2l-p,microbatch=8,token=w.token'), {
      schedule: 'l2l-p',
      microbatch: 8,
      token: 'w.token'
    })
    assert.deepEqual(to.schedule('l2l,gradients=rank:4'), { schedule: 'l2l', gradients: 'rank:4' })
    assert.throws(() => to.schedule('l2l,gradients=rank:0'), /sign or rank:R, with R from 1 to 9999, not as rank:0/)
    assert.throws(() => to.schedule('l2l,token=w.token'), /Its keys are microbatch, stash, workers/)
  })

  it('of --rule: one rule, or an entry for each pattern of layers', () => {
    const rule = to.layered(to.named('rule', rules))
    assert.deepEqual(rule('adam,step=0.1'), { name: 'adam', step: 0.1 })
    assert.deepEqual(rule('embedding : adagrad , step=0.1; block*.mlp:adamw, step=3e-4'), {
      name: 'layers',
      rules: [
        { layers: 'embedding', rule: { name: 'adagrad', step: 0.1 } },
        { layers: 'block*.mlp', rule: { name: 'adamw', step: 3e-4 } }
      ]
    })
    for (const word of ['adam;*:adam', ':adam', '*:adam;'])
      assert.throws(() => rule(word), /expected LAYERS:NAME,key=value/)
    assert.throws(() => rule('*:adams'), /unknown rule 'adams'/)
  })

  it('of --local-steps and --learner', () => {
    assert.deepEqual(to.localSteps('30,bytes=0.03'), { localSteps: 30, localMomentum: undefined, sumBytes: 0.03 })
    assert.deepEqual(to.learner('external,socket=a.sock'), { socket: 'a.sock' })
    assert.throws(() => to.learner('internal'), /one of external/)
  })
})
