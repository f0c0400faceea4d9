/**
 * A peer whose parameters count how often each input was used: a program for tests that kill it. Row i of its file, if it has
 * one, has the single feature i. Every gradient is a unit vector, and the update rule adds gradients. Prints its status as JSON lines.
 */
import { createPeer } from '../../src/index.js'

const {
  plugin,
  data,
  dimension,
  port = 0,
  ...rest
} = JSON.parse(process.argv[2]) as {
  plugin: string
  data?: string
  dimension: number
  port?: number
}
const peer = await createPeer({
  ...(data === undefined ? { features: dimension } : { data: { data, dimension } }),
  model: 'custom:count',
  rule: { name: 'custom:add' },
  averaging: { name: 'uniform' },
  plugins: [plugin],
  predictWith: 'current',
  drift: 'off',
  listen: ['/ip4/127.0.0.1/tcp/0'],
  http: { port },
  log: (level, message) => {
    if (level !== 'info' && level !== 'debug') process.stderr.write(`${level} ${message}\n`)
  },
  ...rest
})
console.log(JSON.stringify({ address: peer.addresses[0], url: peer.url }))
process.on('disconnect', () => process.exit())
process.once('SIGTERM', () => void peer.stop().then(() => process.exit()))
