/**
 * The child process of the exchange benchmark: a peer that receives frames and sends one on request, and a bare libp2p node that
 * counts the bytes of a stream. It sends its addresses to the parent process and ends with it.
 */
import { createBareNode, createBenchPeer, exchangeBytes, frameBytes, rawProtocol } from './exchange-nodes.js'

const network = await createBenchPeer()
network.onSession(session => {
  const own = new Uint8Array(exchangeBytes)
  session.start({
    control: () => void session.sendFrame(own),
    status: () => {},
    announcement: () => {},
    fragment: () => {},
    frame: () => {},
    close: () => {}
  })
})

const bare = await createBareNode()
await bare.handle(rawProtocol, stream => {
  let received = 0
  stream.addEventListener('message', ({ data }) => {
    received += data.byteLength
    if (received < frameBytes) return
    received = 0
    stream.send(Uint8Array.of(1))
  })
})

process.once('disconnect', () => {
  void Promise.all([network.stop(), bare.stop()])
})
process.send?.({ peer: [...network.addresses], bare: bare.getMultiaddrs().map(String) })
