// A 1 m sheet of N x N particles falls on a ball of 0.3 m: Bullet's position-based soft body, one thread, no self-collision.
// Substeps and iterations are what it takes to keep stretch below 5 % on 81 x 81 (measured: 20 x 100). Prints one line of
// JSON. Toile's scene `sphere` of `toile bench step` is the same.
//
//   bullet_sheet N FRAMES [SUBSTEPS ITERATIONS]
#include <BulletSoftBody/btSoftBodyHelpers.h>
#include <BulletSoftBody/btSoftBodyRigidBodyCollisionConfiguration.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>
#include <btBulletDynamicsCommon.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

static double cpu_seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Largest strain of the sheet's warp and weft edges.
static double largest_strain(const btSoftBody *cloth, int n) {
    double rest = 1.0 / (n - 1), most = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            for (int along = 0; along < 2; along++) {
                if ((along ? j : i) == n - 1)
                    continue;
                const btVector3 &a = cloth->m_nodes[j * n + i].m_x;
                const btVector3 &b = cloth->m_nodes[along ? (j + 1) * n + i : j * n + i + 1].m_x;
                most = std::fmax(most, double((a - b).length()) / rest - 1);
            }
    return most;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "bullet_sheet N FRAMES [SUBSTEPS ITERATIONS]\n");
        return 2;
    }
    int n = std::atoi(argv[1]), frames = std::atoi(argv[2]);
    int substeps = argc > 3 ? std::atoi(argv[3]) : 20, iterations = argc > 4 ? std::atoi(argv[4]) : 100;

    btSoftBodyRigidBodyCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btDbvtBroadphase broadphase;
    btSequentialImpulseConstraintSolver solver;
    btSoftRigidDynamicsWorld world(&dispatcher, &broadphase, &solver, &configuration);
    const btVector3 gravity(0, 0, btScalar(-9.81));
    world.setGravity(gravity);
    world.getWorldInfo().m_gravity = gravity;
    world.getWorldInfo().m_dispatcher = &dispatcher;
    world.getWorldInfo().m_broadphase = &broadphase;
    world.getWorldInfo().air_density = 0;
    world.getWorldInfo().m_sparsesdf.Initialize();

    btSphereShape shape(btScalar(0.3));
    btRigidBody ball(btRigidBody::btRigidBodyConstructionInfo(0, nullptr, &shape));
    ball.setFriction(btScalar(0.3));
    world.addRigidBody(&ball);

    const btScalar z = btScalar(0.345), s = btScalar(0.5);
    btSoftBody *cloth = btSoftBodyHelpers::CreatePatch(world.getWorldInfo(), btVector3(-s, -s, z), btVector3(s, -s, z),
                                                       btVector3(-s, s, z), btVector3(s, s, z), n, n, 0, true);
    cloth->getCollisionShape()->setMargin(btScalar(0.004));
    cloth->m_materials[0]->m_kLST = 1;
    cloth->m_cfg.piterations = iterations;
    cloth->m_cfg.kDF = btScalar(0.3);
    cloth->setTotalMass(btScalar(0.15));
    world.addSoftBody(cloth);

    double begin = cpu_seconds(), peak = 0, aside = 0;
    for (int f = 0; f < frames; f++) {
        for (int k = 0; k < substeps; k++)
            world.stepSimulation(btScalar(1.0 / 24 / substeps), 0);
        double before = cpu_seconds();
        peak = std::fmax(peak, largest_strain(cloth, n));
        aside += cpu_seconds() - before;
    }
    double spent = cpu_seconds() - begin - aside;
    double lowest = 1e9;
    for (int i = 0; i < cloth->m_nodes.size(); i++)
        lowest = std::fmin(lowest, double(cloth->m_nodes[i].m_x.z()));
    std::printf("{\"n\": %d, \"frames\": %d, \"substeps\": %d, \"iterations\": %d, \"cpu_ms_per_frame\": %.3f, "
                "\"stretch_final\": %.4f, \"stretch_peak\": %.4f, \"lowest\": %.4f}\n",
                n, frames, substeps, iterations, 1e3 * spent / frames, largest_strain(cloth, n), peak, lowest);
    world.removeSoftBody(cloth);
    delete cloth;
    world.removeRigidBody(&ball);
    return 0;
}
