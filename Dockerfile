# syntax=docker/dockerfile:1

# better-sqlite3 is compiled here when no prebuilt binary can be fetched, so the
# compiler lives in this stage and never reaches the image that runs.
FROM node:24-bookworm-slim AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends python3 make g++ \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    REEVE_LISTEN=0.0.0.0:7450 \
    REEVE_STORE=sqlite:/var/lib/reeve/reeve.db
# The folder is made before VOLUME names it: a fresh volume takes its owner from
# the image, and the service does not run as root.
RUN install -d -o node -g node -m 0750 /var/lib/reeve
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE CHANGELOG.md ./
USER node
VOLUME /var/lib/reeve
EXPOSE 7450
# SIGTERM starts a drain; give the container a stop timeout longer than the grace.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "/app/dist/cli/main.js", "health", "--address", "127.0.0.1:7450"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["serve"]
