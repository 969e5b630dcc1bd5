// Connections that asked for something once and stay open.
import net from 'node:net';

/** Opens `count` connections, each of which has had one answer, and returns a function that closes them. */
export async function openIdle(base, count) {
  const { hostname, port } = new URL(base);
  const sockets = [];
  for (let i = 0; i < count; i += 100) {
    const some = Array.from({ length: Math.min(100, count - i) }, () => new Promise((resolve, reject) => {
      const socket = net.connect(Number(port), hostname);
      socket.once('error', reject);
      socket.once('data', () => resolve(socket));
      socket.write(`GET /health HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    }));
    sockets.push(...await Promise.all(some));
  }
  let lost = 0;
  let closing = false;
  for (const socket of sockets) {
    socket.on('error', () => {});
    socket.on('close', () => { if (!closing) ++lost; });
  }
  return {
    lost: () => lost,
    close: () => {
      closing = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
